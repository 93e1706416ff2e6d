//! A run that ends its workers is given up. Another one is only if its workers were lost as often: all
//! that a store knows of a worker that is frozen, or that it does not hear, is that it is silent.

use super::ensure;
use crate::{End, Event, Fate, Plan, WorkerPlan, history::indexes, world::BatchEnd};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::suspect::FEWEST_LOSSES;

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    let mut claims: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for entry in end.history.surviving() {
        let Event::Claimed { lease, .. } = entry.event else { continue };
        for run in indexes(&lease) {
            claims.entry(run).or_default().push(lease.items.len());
        }
    }
    let calm = plan.workers.iter().all(is_calm) && plan.travels.is_empty();
    for (planned, got) in plan.batches.iter().zip(&end.batches) {
        let given_up = given_up(got);
        let deadly: BTreeSet<u64> = planned.behaviour.deadly.into_iter().collect();
        ensure(given_up.is_superset(&deadly), || format!("{deadly:?} is not given up"))?;
        ensure(!calm || given_up == deadly, || format!("{given_up:?}, not {deadly:?}"))?;
        for index in given_up {
            let claims = &claims[&(got.status.batch.id, index)];
            let alone = claims.last() == Some(&1);
            let enough = claims.len() >= FEWEST_LOSSES.max(planned.retry.max_attempts) as usize;
            ensure(alone && enough, || format!("run {index} was given up after {claims:?}"))?;
        }
    }
    Ok(())
}

/// The runs that were given up because their workers ended.
pub(super) fn given_up(batch: &BatchEnd) -> BTreeSet<u64> {
    let lost = batch.exceptions.iter().filter(|dead| dead.reason.starts_with("its worker ended"));
    lost.map(|dead| dead.index).collect()
}

/// No lease of such a worker is lost unless it ends.
fn is_calm(worker: &WorkerPlan) -> bool {
    let undisturbed = matches!(worker.fate, Fate::Lives | Fate::Stops { .. });
    undisturbed && worker.faults.failing == 0.0 && worker.faults.slow == 0.0
}
