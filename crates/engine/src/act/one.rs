//! One run: its verdict whatever it does.

use crate::{backoff::mix, group::Group};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};
use tidegate_core::{RetryItem, Run, RunError, Verdict, run::Emitted};
use tokio::time::Instant;

/// What came of acting on one run.
pub struct Acted {
    /// Its numbers and categories, if it succeeded; its result is in the buffer.
    pub emitted: Result<Emitted, RunError>,
}

/// Carries out one run of a group that begins `now`. The result is left in `result`.
pub fn act_on(group: &Group, item: RetryItem, now: Instant, result: &mut Vec<u8>) -> Acted {
    result.clear();
    let deadline = group.batch.timeout.map(|timeout| (now + timeout).into_std());
    let mut run = Run::new(group.batch.seed, item.index).after(item.attempts).until(deadline);
    let outcome = catch_unwind(AssertUnwindSafe(|| group.prepared.run(&mut run, result)));
    let emitted = match outcome {
        Ok(Ok(())) => run.finish(),
        Ok(Err(error)) => Err(error),
        Err(panic) => Err(RunError::new(format!("panicked: {}", message(&*panic)))),
    };
    Acted { emitted }
}

/// The verdict on a run that failed.
pub fn failed(group: &Group, item: RetryItem, error: RunError) -> Verdict {
    let jitter = mix(group.batch.seed ^ mix(item.index) ^ u64::from(item.attempts));
    Verdict::failed(&group.batch.retry, item.attempts, error.permanent, error.reason, jitter)
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}
