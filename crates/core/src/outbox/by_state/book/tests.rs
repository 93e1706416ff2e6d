use super::*;
use crate::outbox::{Aside, LANES, Pattern};
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(1_000);

fn key_of(number: u64) -> HeldKey {
    let key = KeyHash(number as i64);
    HeldKey { lane: Lane((number % u64::from(LANES)) as u16), sink: "s".to_owned(), key }
}

fn request(under_way: Vec<Position>) -> ClaimRequest {
    let lanes = Lane::all().collect();
    ClaimRequest { lanes, under_way, most_due: 1_000, ..ClaimRequest::default() }
}

fn set(position: i64, key: Option<u64>, aside: Aside) -> SetAside {
    SetAside {
        lane: key.map_or(Lane(0), |key| key_of(key).lane),
        position: Position(position),
        topic: "t".to_owned(),
        key: key.map(|key| KeyHash(key as i64)),
        sink: "s".to_owned(),
        aside,
    }
}

fn row(position: i64, key: Option<u64>, aside: Aside) -> (Position, AsideRow) {
    let set = set(position, key, aside);
    (set.position, AsideRow::new(position.to_string().into(), &set, NOW))
}

fn retry(seconds: u64) -> Aside {
    Aside::Retry { attempts: 1, reason: "no".to_owned(), delay: Duration::from_secs(seconds) }
}

#[test]
fn only_the_first_of_a_key_is_due_and_brings_those_behind() {
    let mut book = AsideBook::default();
    let rows =
        [row(1, Some(7), retry(5)), row(2, Some(7), Aside::Behind), row(3, None, Aside::Behind)];
    assert!(book.settle(rows, [], NOW).is_empty());
    assert_eq!(
        book.due(&request(vec![]), NOW),
        [Position(3)],
        "without a key there is nothing before it"
    );
    assert_eq!(book.next_due(&request(vec![Position(3)]), NOW), Some(Duration::from_secs(5)));
    let later = NOW + Duration::from_secs(5);
    assert_eq!(book.due(&request(vec![Position(3)]), later), [Position(1), Position(2)]);
    assert!(book.settle([], [Position(1)], later).is_empty());
    assert_eq!(book.due(&request(vec![]), later), [Position(2), Position(3)]);
    assert_eq!(book.settle([], [Position(2), Position(3)], later), [key_of(7)]);
    assert!(book.is_empty());
}

#[test]
fn a_dead_message_holds_its_key_only_if_it_is_to() {
    let dead = |then| Aside::Dead { attempts: 3, reason: "no".to_owned(), then };
    let mut book = AsideBook::default();
    book.settle([row(1, Some(7), dead(OnDead::Block)), row(2, Some(7), Aside::Behind)], [], NOW);
    assert!(book.due(&request(vec![]), NOW).is_empty());
    let freed = book.settle([row(1, Some(7), dead(OnDead::Skip))], [], NOW);
    assert!(freed.is_empty(), "one waits still");
    assert_eq!((book.len(), book.due(&request(vec![]), NOW)), (1, vec![Position(2)]));
}

#[test]
fn routes_decide_for_whom_it_waits() {
    let mut book = AsideBook::default();
    book.settle([row(1, Some(7), retry(50)), row(2, Some(7), Aside::Behind)], [], NOW);
    let route =
        |topics: &str| Route { topics: Pattern(topics.to_owned()), sink: "other".to_owned() };
    let held = book.gain(key_of(7).lane, &[route("*")], NOW);
    assert_eq!(held, [HeldKey { sink: "other".to_owned(), ..key_of(7) }]);
    assert_eq!(
        book.due(&request(vec![]), NOW),
        [Position(1), Position(2)],
        "there it is tried at once"
    );
    assert!(book.gain(key_of(7).lane, &[route("none")], NOW).is_empty());
    assert_eq!(book.get(Position(1)).map(|row| row.state), Some(StuckState::Unrouted));
}

/// What one step of a random history does.
#[derive(Clone, Debug)]
enum Step {
    Retry(i64, u64, u64),
    Behind(i64, u64),
    Dead(i64, u64, bool),
    Done(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (position, key) = (1..30_i64, 0..4_u64);
    let step = prop_oneof![
        (position.clone(), key.clone(), 0..20_u64)
            .prop_map(|(at, key, delay)| Step::Retry(at, key, delay)),
        (position.clone(), key.clone()).prop_map(|(at, key)| Step::Behind(at, key)),
        (position.clone(), key, any::<bool>())
            .prop_map(|(at, key, blocks)| Step::Dead(at, key, blocks)),
        position.prop_map(Step::Done),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Whatever happened: of each key, nothing is due but the first that holds it with those right behind it, and
    /// whatever waits by itself becomes due.
    #[test]
    fn heads_are_due_and_no_others(steps in steps()) {
        let mut book = AsideBook::default();
        for step in steps {
            let known = |position: i64, key: u64| {
                // A message has one key for as long as it lives.
                book.get(Position(position)).map_or(key, |row| row.key.map_or(key, |key| key.0 as u64))
            };
            match step {
                Step::Retry(at, key, delay) => {
                    let key = known(at, key);
                    book.settle([row(at, Some(key), retry(delay))], [], NOW);
                }
                Step::Behind(at, key) => {
                    let key = known(at, key);
                    book.settle([row(at, Some(key), Aside::Behind)], [], NOW);
                }
                Step::Dead(at, key, blocks) => {
                    let then = if blocks { OnDead::Block } else { OnDead::Skip };
                    let key = known(at, key);
                    let dead = Aside::Dead { attempts: 1, reason: "no".to_owned(), then };
                    book.settle([row(at, Some(key), dead)], [], NOW);
                }
                Step::Done(at) => drop(book.settle([], [Position(at)], NOW)),
            }
        }
        let later = NOW + Duration::from_secs(60);
        let due: BTreeSet<Position> = book.due(&request(vec![]), later).into_iter().collect();
        for key in 0..4 {
            let line: Vec<(&Position, &AsideRow)> = book.rows.iter()
                .filter(|(_, row)| row.holds() && row.held_key() == Some(key_of(key))).collect();
            let open = line.iter().take_while(|(_, row)| row.state != StuckState::Dead).count();
            let expected: BTreeSet<Position> = line[..open].iter().map(|(at, _)| **at).collect();
            let found: BTreeSet<Position> = due.iter().copied()
                .filter(|at| line.iter().any(|(known, _)| *known == at)).collect();
            prop_assert_eq!(&found, &expected);
            let retrying = line.iter().filter(|(_, row)| row.state == StuckState::Retry).count();
            prop_assert_eq!(retrying, usize::from(open > 0));
        }
    }
}
