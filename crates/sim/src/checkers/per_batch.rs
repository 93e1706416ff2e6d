//! Settlements grow with leases, flushes and time, not with runs.

use super::ensure;
use crate::{End, Event, Plan};
use std::{collections::BTreeMap, time::Duration};
use tidegate_core::settle::{Part, Progress, Settled};

#[derive(Default)]
struct Work {
    settlements: u64,
    runs: u64,
    ended: u64,
    times: Option<(Duration, Duration)>,
}

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    let mut workers: BTreeMap<usize, Work> = BTreeMap::new();
    for entry in end.history.read() {
        let work = workers.entry(entry.worker).or_default();
        let first = work.times.map_or(entry.at, |(first, _)| first);
        work.times = Some((first, entry.at));
        if let Event::Settled { parts, answer: Settled::Applied, .. } = entry.event {
            work.settlements += 1;
            work.runs += parts.iter().map(|part| part.progress.len()).sum::<u64>();
            work.ended += parts.iter().filter(|part| ends_something(part)).count() as u64;
        }
    }
    for (place, work) in workers {
        let Some(worker) = plan.workers.get(place) else { continue };
        let (first, last) = work.times.unwrap_or_default();
        let by_time = (last - first).as_millis() / worker.flush_after.as_millis().max(1);
        let allowed = work.ended + work.runs / worker.flush_runs + by_time as u64 + 2;
        ensure(work.settlements <= allowed, || {
            format!("{} settlements where {allowed} are enough", work.settlements)
        })?;
    }
    Ok(())
}

/// The last runs of a lease need not wait for more. Retries do not say whether they are the last.
fn ends_something(part: &Part) -> bool {
    match part.progress {
        Progress::Range { settled, end } => settled.hi == end,
        Progress::Retries { .. } => true,
    }
}
