//! Crashes, freezes, stops and a failing store use up no attempt.

use super::{ensure, lost_work::given_up};
use crate::{End, Plan, workload::Behaviour};
use tidegate_core::Run;

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    for (planned, got) in plan.batches.iter().zip(&end.batches) {
        let lost = given_up(got);
        for exception in &got.exceptions {
            let expected = planned.behaviour.of(&mut Run::new(planned.seed, exception.index));
            if lost.contains(&exception.index) {
                continue;
            }
            let wanted = Behaviour::dead_after(expected, planned.retry.max_attempts);
            ensure(Some(exception.attempts) == wanted, || {
                format!("{exception:?} should have {wanted:?} attempts")
            })?;
            ensure(!exception.reason.is_empty(), || format!("{exception:?} has no reason"))?;
        }
    }
    Ok(())
}
