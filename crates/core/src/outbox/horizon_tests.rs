//! What a process knows about ids, case by case. Any interleaving with publishers is tried in the simulator.

use super::*;

/// A statement that finds these transactions open, if it has to look.
fn look(horizon: &mut Horizon, open: &[i64], writers: &[i64], drawn: i64) -> i64 {
    let asked = horizon.ask();
    let held = asked.writers.iter().zip(&asked.holds).filter(|(number, _)| open.contains(number));
    let held: Vec<(i64, i64)> = held.map(|(number, mark)| (*number, *mark)).collect();
    let below = held.iter().map(|(_, mark)| *mark).min().unwrap_or(i64::MAX);
    let decided = asked.marks.iter().copied().filter(|mark| *mark < below).max().unwrap_or(0);
    let writers = (drawn > asked.marked).then(|| writers.to_vec());
    let open = held.into_iter().map(|(number, _)| number).collect();
    horizon.learn(&asked, &Seen { decided, open, drawn, writers });
    horizon.decided
}

#[test]
fn without_open_transactions_a_second_look_decides() {
    let mut horizon = Horizon::default();
    assert_eq!(look(&mut horizon, &[], &[], 7), 0);
    assert!(horizon.is_behind());
    assert_eq!(look(&mut horizon, &[], &[], 7), 7);
    assert!(!horizon.is_behind());
    let (marks, writers, holds) = (vec![7], vec![], vec![]);
    assert_eq!(horizon.ask(), Asked { marks, writers, holds, marked: 7 });
}

#[test]
fn a_transaction_holds_back_what_was_drawn_since_it_was_seen_and_nothing_before() {
    let mut horizon = Horizon::default();
    look(&mut horizon, &[], &[], 7);
    assert_eq!(look(&mut horizon, &[50], &[50], 9), 7);
    assert_eq!(look(&mut horizon, &[50], &[50, 51], 11), 7, "50 may have drawn 8 or 9");
    assert_eq!(look(&mut horizon, &[51], &[], 11), 9, "51 may have drawn 10 or 11");
    assert_eq!(look(&mut horizon, &[], &[], 11), 11);
    assert!(horizon.writers.is_empty());
}

#[test]
fn marks_and_writers_are_bounded() {
    let mut horizon = Horizon::default();
    (0..10_000).for_each(|n| {
        look(&mut horizon, &[1], &[1], n);
    });
    assert!(horizon.marks.len() <= MOST_MARKS && horizon.writers.len() == 1);
    assert!(look(&mut horizon, &[], &[], 9_999) >= 9_900);
}

#[test]
fn a_sequence_that_was_set_back_is_noticed() {
    let mut horizon = Horizon::default();
    look(&mut horizon, &[], &[], 7);
    look(&mut horizon, &[], &[], 7);
    assert!(horizon.is_set_back(6) && !horizon.is_set_back(7));
}
