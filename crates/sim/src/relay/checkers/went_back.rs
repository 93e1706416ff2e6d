//! Of the messages that the store has when all is done, none is lost and none is out of order, however often the store
//! went back in time under living relays.

use super::ensure;
use crate::relay::{End, Event, Scenario, history::position, scenario::Nature};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::Position;

/// A message that the store has at the end.
struct Survivor {
    id: Position,
    /// When it was taken in for the first time: the place of the event, and in that.
    first: Option<(usize, usize)>,
}

pub fn check(scenario: &Scenario, end: &End) -> Result<(), String> {
    let survivors = survivors(end);
    let stuck: BTreeSet<Position> = end.stuck.iter().map(|stuck| position(&stuck.id)).collect();
    for (message, survivor) in &survivors {
        let may_wait = may_die(scenario, *message) && stuck.contains(&survivor.id);
        ensure(survivor.first.is_some() || may_wait, || {
            let plan = &scenario.messages[*message];
            format!("message {message} ({}) is lost: {plan:?}", survivor.id)
        })?;
    }
    let mut keys: BTreeMap<(&str, usize), Vec<usize>> = BTreeMap::new();
    for message in survivors.keys().filter(|message| !may_die(scenario, **message)) {
        let plan = &scenario.messages[*message];
        if let (Some(key), Some(sink)) = (&plan.key, scenario.steady(plan.topic)) {
            keys.entry((key, sink)).or_default().push(*message);
        }
    }
    for ((key, sink), messages) in &keys {
        for two in messages.windows(2) {
            let [first, second] = [two[0], two[1]].map(|message| survivors[&message].first);
            ensure(first < second, || {
                format!("{} was taken in before {} (key {key}, sink {sink})", two[1], two[0])
            })?;
        }
    }
    Ok(())
}

/// What the store has at the end, by place in the scenario, which is the order in which it was published.
fn survivors(end: &End) -> BTreeMap<usize, Survivor> {
    let mut survivors = BTreeMap::new();
    let mut taken: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (at, entry) in end.history.iter().enumerate() {
        match &entry.event {
            Event::Published { id, message } => {
                survivors.insert(*message, Survivor { id: *id, first: None });
            }
            Event::WentBack(gone) => survivors.retain(|message, _| !gone.contains(message)),
            Event::Accepted { messages, .. } => {
                for (nth, message) in messages.iter().enumerate() {
                    taken.entry(*message).or_insert((at, nth));
                }
            }
            _ => {}
        }
    }
    for (message, survivor) in &mut survivors {
        survivor.first = taken.get(message).copied();
    }
    survivors
}

/// Whether a message may be given up, in a history that was lost, too: others of its key go on then.
fn may_die(scenario: &Scenario, message: usize) -> bool {
    let most = scenario.policy(message).retry.max_attempts;
    match scenario.messages[message].nature {
        Nature::Good => false,
        Nature::Flaky(times) => times >= most,
        Nature::Busy(_) => false,
        Nature::Away(..) | Nature::Bad => true,
    }
}
