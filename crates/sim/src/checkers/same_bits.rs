//! Aggregates and digest are those of a calm world with one worker.

use super::{ensure, lost_work::given_up};
use crate::{End, Plan};

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    for (planned, got) in plan.batches.iter().zip(&end.batches) {
        let (seed, runs, attempts) = (planned.seed, planned.runs, planned.retry.max_attempts);
        let wanted = planned.behaviour.aggregates(seed, runs, attempts, &given_up(got));
        ensure(got.aggregates.digest == wanted.digest, || {
            format!("digest {} instead of {}", got.aggregates.digest, wanted.digest)
        })?;
        ensure(got.aggregates.encode() == wanted.encode(), || {
            format!("{:?} instead of {:?}", got.aggregates.summary(), wanted.summary())
        })?;
    }
    Ok(())
}
