//! A worker that is asked to stop ends within its grace, and holds nothing afterwards.

use super::ensure;
use crate::{End, Event, Plan, history::Entry};
use std::{collections::BTreeSet, time::Duration};
use tidegate_core::{
    Fence,
    settle::{Part, Progress, Settled},
};

/// What the last settlement and giving back may take, two seconds each, whatever the store does.
const CALLS: Duration = Duration::from_secs(4);

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    let history = end.history.read();
    for entry in &history {
        let Event::Stopped { asked, grace } = entry.event else { continue };
        let took = entry.at - asked;
        ensure(took <= grace + CALLS, || format!("stopping took {took:?}"))?;
        // A broken connection may leave leases that the worker could not give back: they expire.
        let calm = plan.workers[entry.worker].faults.failing == 0.0;
        let kept = held_at_end(&history, entry.worker);
        ensure(!calm || kept.is_empty(), || format!("{kept:?} were not given back"))?;
    }
    Ok(())
}

fn held_at_end(history: &[Entry], worker: usize) -> BTreeSet<Fence> {
    let mut held = BTreeSet::new();
    for entry in history.iter().filter(|entry| entry.worker == worker) {
        match &entry.event {
            Event::Claimed { lease, .. } => {
                held.insert(lease.fence);
            }
            Event::Ended => held.clear(),
            Event::GivenBack(leases) => {
                held.retain(|fence| !leases.iter().any(|lease| lease.fence == *fence));
            }
            Event::Renewed { lost, .. } | Event::Settled { answer: Settled::Late(lost), .. } => {
                held.retain(|fence| !lost.contains(fence));
            }
            Event::Settled { parts, answer: Settled::Applied, .. } => {
                held.retain(|fence| !parts.iter().any(|p| p.fence == *fence && ends_lease(p)));
            }
            _ => {}
        }
    }
    held
}

/// Retries are leased and settled row by row: any settled one counts as the end of its lease.
fn ends_lease(part: &Part) -> bool {
    match part.progress {
        Progress::Range { settled, end } => settled.hi == end,
        Progress::Retries { .. } => true,
    }
}
