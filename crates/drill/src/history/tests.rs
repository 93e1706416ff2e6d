use super::*;
use proptest::prelude::*;

const AFTERMATH: Moment = 5_000_000;
const MS: Moment = 1_000;

/// Messages that are published and delivered one after the other, a millisecond apart, by relay 1; every third is of the
/// healthy topic. `keys` gives the key of each.
fn calm(keys: &[u32]) -> History {
    let mut history = History { aftermath: AFTERMATH, ..History::default() };
    for (number, key) in keys.iter().enumerate() {
        let at = (number as Moment + 1) * 10 * MS;
        let healthy = number % 3 == 0;
        history.attempts.push(Attempt { key: *key, healthy, fate: Fate::Committed(at) });
        history.sightings.push(sighting(number as u32, 1, at + MS));
        history.stored.push(number as u32);
    }
    history
}

fn sighting(number: u32, relay: u32, arrived: Moment) -> Sighting {
    Sighting { number, relay, arrived, answered: Some(arrived + MS / 2), accepted: true }
}

/// What is wrong, as numbers: lost, unexpected, order, unexplained duplicates.
fn wrong(findings: &Findings) -> [u64; 4] {
    [findings.lost, findings.unexpected, findings.order_violations, findings.duplicates.unexplained]
}

#[test]
fn a_calm_history_has_no_findings() {
    let findings = calm(&[1, 2, 1, 3, 1]).judge();
    assert_eq!(wrong(&findings), [0; 4]);
    assert_eq!((findings.messages.stored, findings.messages.accepted), (5, 5));
    assert_eq!(findings.stall, Stall { topic_ms: 1, message_ms: 1, message_at_ms: 10 });
    assert_eq!(findings.examples, Vec::<String>::new());
}

#[test]
fn a_delivery_that_the_sink_refused_delivers_nothing() {
    let mut history = calm(&[1, 1]);
    history.sightings[1].accepted = false;
    assert_eq!(wrong(&history.judge()), [1, 0, 0, 0]);
    // The relay sends it again, which is not a duplicate.
    history.sightings.push(sighting(1, 1, 900 * MS));
    let findings = history.judge();
    assert_eq!(wrong(&findings), [0; 4]);
    assert_eq!((findings.messages.refused, findings.duplicates.total), (1, 0));
}

#[test]
fn a_later_message_that_is_tried_while_an_earlier_one_fails_breaks_the_order() {
    let mut history = calm(&[1, 1]);
    history.sightings[0].accepted = false;
    history.sightings.push(sighting(0, 1, 900 * MS));
    assert_eq!(wrong(&history.judge()), [0, 0, 1, 0]);
}

#[test]
fn a_later_message_that_arrives_before_the_answer_breaks_the_order() {
    let mut history = calm(&[1, 1]);
    history.sightings[0].answered = Some(history.sightings[1].arrived + 1);
    assert_eq!(wrong(&history.judge()), [0, 0, 1, 0]);
}

#[test]
fn what_a_server_fault_took_back_is_listed_apart_and_only_then() {
    let mut history = calm(&[1, 2, 3, 4]);
    // The first was delivered, the second was not, and the server has neither.
    history.stored = vec![2, 3];
    history.sightings.remove(1);
    assert_eq!(wrong(&history.judge()), [1, 1, 0, 0]);
    history.server_faults = vec![ServerFault { from: 100 * MS, to: 200 * MS }];
    let findings = history.judge();
    assert_eq!(wrong(&findings), [0; 4]);
    let Messages { delivered_then_taken_back, taken_back, .. } = findings.messages;
    assert_eq!((delivered_then_taken_back, taken_back), (1, 1));
    // A fault that was over before the commit explains nothing.
    history.server_faults = vec![ServerFault { from: MS, to: 2 * MS }];
    assert_eq!(wrong(&history.judge()), [1, 1, 0, 0]);
}

#[test]
fn rolled_back_messages_must_be_nowhere() {
    let mut history = calm(&[1, 2, 3]);
    history.attempts[0].fate = Fate::RolledBack;
    history.attempts[1].fate = Fate::RolledBack;
    history.stored = vec![0, 2];
    // A server fault is no excuse.
    history.server_faults = vec![ServerFault { from: 100 * MS, to: 200 * MS }];
    assert_eq!(wrong(&history.judge()), [0, 2, 0, 0]);
}

#[test]
fn a_commit_without_an_answer_may_have_happened_or_not() {
    let mut history = calm(&[1, 2]);
    history.attempts[0].fate = Fate::Unknown;
    history.attempts[1].fate = Fate::Unknown;
    history.stored = vec![0];
    history.sightings.truncate(1);
    assert_eq!(wrong(&history.judge()), [0; 4]);
}

#[test]
fn a_duplicate_is_explained_by_a_fault_of_one_of_its_relays() {
    let mut history = calm(&[1]);
    history.sightings.push(sighting(0, 2, 3_000 * MS));
    let with = |relay, from, to| {
        let relay_faults = vec![RelayFault { relay, from, to }];
        History { relay_faults, ..history.clone() }.judge()
    };
    assert_eq!(wrong(&history.judge()), [0, 0, 0, 1]);
    // Relay 1 was killed after its delivery.
    let findings = with(1, 12 * MS, 12 * MS);
    assert_eq!(findings.duplicates.after_relay_faults, 1);
    assert_eq!(findings.in_flight.total(), 1);
    // It was killed so long after its delivery that it had settled it.
    assert_eq!(wrong(&with(1, 1_500 * MS, 1_500 * MS)), [0, 0, 0, 1]);
    // Relay 2 was stopped and goes on.
    assert_eq!(wrong(&with(2, 5 * MS, 2_900 * MS)), [0; 4]);
    // Relay 3 has nothing to do with it; and a kill after the second delivery neither.
    assert_eq!(wrong(&with(3, 12 * MS, 12 * MS)), [0, 0, 0, 1]);
    assert_eq!(wrong(&with(1, 3_001 * MS, 3_001 * MS)), [0, 0, 0, 1]);
}

#[test]
fn a_key_that_ends_with_an_older_message_is_counted() {
    let mut history = calm(&[1, 1, 2]);
    assert_eq!(history.judge().keys_with_older_end, 0);
    history.sightings.push(sighting(0, 2, 900 * MS));
    assert_eq!(history.judge().keys_with_older_end, 1);
    history.sightings.push(sighting(1, 2, 901 * MS));
    assert_eq!(history.judge().keys_with_older_end, 0);
}

#[test]
fn in_flight_is_what_was_not_answered_or_just_answered() {
    let mut history = calm(&[1, 2, 3, 4]);
    let kill = 3_000 * MS;
    history.sightings[1].answered = None;
    history.sightings[2].answered = Some(kill - 200 * MS);
    history.sightings[3].relay = 2;
    history.relay_faults = vec![RelayFault { relay: 1, from: kill, to: kill }];
    let expected = InFlight { faults: 1, unanswered: 1, just_answered: 1, most: 2 };
    assert_eq!(history.judge().in_flight, expected);
}

#[test]
fn a_stall_is_measured_between_server_faults() {
    let mut history = calm(&[1, 2, 3, 4]);
    // Message 3 is healthy: committed at 40 ms, delivered at 5 s.
    history.sightings[3].arrived = 5_000 * MS;
    history.sightings[3].answered = Some(5_001 * MS);
    let expected = Stall { topic_ms: 4_960, message_ms: 4_960, message_at_ms: 40 };
    assert_eq!(history.judge().stall, expected);
    history.server_faults = vec![ServerFault { from: 1_000 * MS, to: 2_000 * MS }];
    assert_eq!(history.judge().stall.message_ms, 3_000);
}

#[test]
fn a_topic_that_moves_is_not_stalled_while_one_message_waits() {
    let mut history = calm(&[1; 31]);
    history.attempts.iter_mut().for_each(|attempt| attempt.healthy = true);
    history.attempts[0].key = 2;
    let late = Sighting { arrived: 320 * MS, answered: Some(321 * MS), ..history.sightings[0] };
    history.sightings[0] = late;
    history.sightings.rotate_left(1);
    let stall = history.judge().stall;
    assert_eq!(stall.message_ms, 310);
    assert!(stall.topic_ms < 20, "{stall:?}");
}

/// A mistake that a checker must find, made in an otherwise calm history.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    Lose,
    Repeat,
    Swap,
    Invent,
    DeliverRolledBack,
    Forget,
}

fn make(history: &mut History, mistake: Mistake, at: usize) -> [u64; 4] {
    let count = history.attempts.len();
    match mistake {
        Mistake::Lose => {
            history.sightings.remove(at);
            [1, 0, 0, 0]
        }
        Mistake::Repeat => {
            let again = sighting(at as u32, 2, (count as Moment + 2) * 10 * MS);
            history.sightings.push(again);
            [0, 0, 0, 1]
        }
        Mistake::Swap => {
            // The next of the same key, if there is one, arrives in its place.
            let key = history.attempts[at].key;
            let next = (at + 1..count).find(|next| history.attempts[*next].key == key);
            let Some(next) = next else { return [0; 4] };
            history.sightings[at].number = next as u32;
            history.sightings[next].number = at as u32;
            let between = (at + 1..next).filter(|it| history.attempts[*it].key == key).count();
            // The later one came too early; the earlier one came late, and nothing is between them.
            assert_eq!(between, 0);
            [0, 0, 1, 0]
        }
        Mistake::Invent => {
            history.sightings.push(sighting(count as u32 + 7, 1, 990_000 * MS));
            [0, 1, 0, 0]
        }
        Mistake::DeliverRolledBack => {
            history.attempts[at].fate = Fate::RolledBack;
            history.stored.retain(|number| *number != at as u32);
            [0, 1, 0, 0]
        }
        Mistake::Forget => {
            history.sightings.remove(at);
            history.stored.retain(|number| *number != at as u32);
            [1, 0, 0, 0]
        }
    }
}

fn mistakes() -> impl Strategy<Value = Mistake> {
    prop::sample::select(vec![
        Mistake::Lose,
        Mistake::Repeat,
        Mistake::Swap,
        Mistake::Invent,
        Mistake::DeliverRolledBack,
        Mistake::Forget,
    ])
}

proptest! {
    #[test]
    fn one_mistake_is_found_and_nothing_else(
        keys in prop::collection::vec(0_u32..5, 1..60),
        mistake in mistakes(),
        place in any::<prop::sample::Index>(),
    ) {
        let mut history = calm(&keys);
        prop_assert_eq!(wrong(&history.judge()), [0; 4]);
        let expected = make(&mut history, mistake, place.index(keys.len()));
        let findings = history.judge();
        prop_assert_eq!(wrong(&findings), expected);
        prop_assert_eq!(findings.examples.len() as u64, expected.iter().sum::<u64>());
    }

    /// Redeliveries of any part of the history after a kill, in order, are duplicates and nothing else.
    #[test]
    fn a_kill_explains_redeliveries(
        keys in prop::collection::vec(0_u32..5, 1..60),
        again in prop::collection::btree_set(0_usize..60, 0..20),
    ) {
        let mut history = calm(&keys);
        let kill = (keys.len() as Moment + 1) * 10 * MS;
        history.relay_faults.push(RelayFault { relay: 1, from: kill, to: kill });
        let again: Vec<usize> = again.into_iter().filter(|it| *it < keys.len()).collect();
        for (n, number) in again.iter().enumerate() {
            history.sightings.push(sighting(*number as u32, 2, kill + (n as Moment + 1) * MS));
        }
        let findings = history.judge();
        prop_assert_eq!(wrong(&findings), [0; 4]);
        prop_assert_eq!(findings.duplicates.after_relay_faults, again.len() as u64);
    }
}
