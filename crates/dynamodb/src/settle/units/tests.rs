use super::*;
use proptest::prelude::*;

fn action() -> TransactWriteItem {
    TransactWriteItem::builder().build()
}

fn unit(position: i64, actions: usize, bytes: usize) -> Unit {
    Unit {
        lane: Lane(0),
        position: Position(position),
        actions: vec![action(); actions],
        smaller: VecDeque::from([vec![action(); actions]]),
        otherwise: vec![action()],
        becomes: None,
        row: "1/a".into(),
        was_outstanding: false,
        keys: Vec::new(),
        bytes,
    }
}

proptest! {
    /// All are written, in their order, and no transaction is more than DynamoDB takes.
    #[test]
    fn transactions_stay_within_the_bounds(
        sizes in prop::collection::vec((1_usize..=3, prop_oneof![LARGE..LARGE + 5_000, LARGE..420_000]), 0..200),
    ) {
        let units = sizes.iter().zip(0..).map(|((actions, bytes), n)| unit(n, *actions, *bytes));
        let chunks = chunks(units.collect());
        let positions: Vec<i64> = chunks.iter().flatten().map(|unit| unit.position.0).collect();
        prop_assert_eq!(positions, (0..sizes.len() as i64).collect::<Vec<_>>());
        for chunk in &chunks {
            let actions: usize = chunk.iter().map(|unit| unit.actions.len()).sum();
            let bytes: usize = chunk.iter().map(|unit| unit.bytes).sum();
            prop_assert!(actions < MAX_ACTIONS && bytes <= 4 << 20 && !chunk.is_empty());
        }
        // Two that follow each other would not fit into one.
        for (one, other) in chunks.iter().zip(chunks.iter().skip(1)) {
            let both = || one.iter().chain(other);
            let bytes: usize = both().map(|unit| unit.bytes).sum();
            let actions: usize = both().map(|unit| unit.actions.len()).sum();
            prop_assert!(bytes > MOST_BYTES || actions >= MAX_ACTIONS || both().count() > MOST_UNITS);
        }
    }
}

#[test]
fn only_the_one_that_was_refused_does_with_less() {
    let codes = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect::<Vec<_>>();
    let mut chunk = [unit(0, 2, 0), unit(1, 2, 0), unit(2, 2, 0)];
    let refused = codes(&["None", "None", "None", "None", "ValidationError", "None", "None"]);
    assert!(fall_back(&mut chunk, &refused));
    assert_eq!(chunk.each_ref().map(|unit| unit.smaller.len()), [1, 0, 1]);
    // There is nothing smaller any more: it must be told by itself.
    assert!(!fall_back(&mut chunk, &refused));
    assert_eq!(chunk[1].actions.len(), 2);
    let gone = codes(&["None", "None", "None", "None", "None", "None", "ConditionalCheckFailed"]);
    assert!(fall_back(&mut chunk, &gone));
    assert_eq!(chunk.each_ref().map(|unit| unit.actions.len()), [2, 2, 1]);
}
