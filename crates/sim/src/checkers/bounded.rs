//! No worker holds more leases than its hands are good for.

use super::ensure;
use crate::{End, Event, Plan};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::{
    Fence,
    settle::{Progress, Settled},
};

/// Groups held per hand, from claim to settlement.
const PER_HAND: usize = 8;

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    let mut held: BTreeMap<usize, BTreeSet<Fence>> = BTreeMap::new();
    for entry in end.history.read() {
        let mine = held.entry(entry.worker).or_default();
        match entry.event {
            Event::Claimed { lease, .. } => {
                mine.insert(lease.fence);
            }
            Event::Settled { parts, answer: Settled::Applied, .. } => {
                for part in parts {
                    let done = match part.progress {
                        Progress::Range { settled, end } => settled.hi == end,
                        Progress::Retries { .. } => true,
                    };
                    if done {
                        mine.remove(&part.fence);
                    }
                }
            }
            Event::Ended => mine.clear(),
            Event::Settled { answer: Settled::Late(lost), .. } | Event::Renewed { lost, .. } => {
                mine.retain(|fence| !lost.contains(fence));
            }
            _ => {}
        }
        // A claim whose answer was lost leaves leases that the worker never knew of.
        let Some(worker) = plan.workers.get(entry.worker) else { continue };
        let bound = worker.hands * PER_HAND;
        let calm = worker.faults.failing == 0.0;
        ensure(!calm || mine.len() <= bound, || format!("{} leases, not {bound}", mine.len()))?;
    }
    Ok(())
}
