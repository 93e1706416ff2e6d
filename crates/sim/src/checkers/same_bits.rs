//! Aggregates and digest are those of a calm world with one worker.

use super::ensure;
use crate::{End, Plan};

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    for (planned, got) in plan.batches.iter().zip(&end.batches) {
        let wanted =
            planned.behaviour.aggregates(planned.seed, planned.runs, planned.retry.max_attempts);
        ensure(got.aggregates.digest == wanted.digest, || {
            format!("digest {} instead of {}", got.aggregates.digest, wanted.digest)
        })?;
        ensure(got.aggregates.encode() == wanted.encode(), || {
            format!("{:?} instead of {:?}", got.aggregates.summary(), wanted.summary())
        })?;
    }
    Ok(())
}
