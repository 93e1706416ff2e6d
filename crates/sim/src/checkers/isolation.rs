//! A run fails only by its own doing, whatever happens to the runs and workers around it.

use super::ensure;
use crate::{End, Event, Plan};
use std::collections::BTreeMap;
use tidegate_core::{Run, settle::Settled};

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    let ids = end.batches.iter().map(|batch| batch.status.batch.id);
    let batches: BTreeMap<_, _> = ids.zip(&plan.batches).collect();
    for entry in end.history.surviving() {
        let Event::Settled { parts, answer: Settled::Applied, .. } = entry.event else { continue };
        for part in parts {
            let planned = batches[&part.batch];
            for failed in part.failed {
                let expected = planned.behaviour.of(&mut Run::new(planned.seed, failed.index));
                let own = expected.failures.is_none_or(|failures| failed.attempts <= failures);
                ensure(own, || format!("{failed:?} failed, though it only does so {expected:?}"))?;
            }
        }
    }
    Ok(())
}
