//! One run: its verdict whatever it does.

use crate::{backoff::mix, group::Group};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};
use tidegate_core::{RetryItem, Run, RunError, run::Emitted, settle::Failed};

/// What came of acting on one run: what it yielded, or why it failed.
pub type Acted<'a> = Result<Yield<'a>, RunError>;

/// What a successful run yielded.
pub struct Yield<'a> {
    /// As JSON.
    pub result: &'a [u8],
    /// Its numbers and categories.
    pub emitted: &'a Emitted,
}

/// Where one run after the other is carried out, so that none of them has to allocate.
pub struct Workbench {
    run: Run,
    result: Vec<u8>,
}

impl Default for Workbench {
    fn default() -> Self {
        Self { run: Run::new(0, 0), result: Vec::new() }
    }
}

impl Workbench {
    /// Carries out one run of a group.
    pub fn act(&mut self, group: &Group, item: RetryItem) -> Acted<'_> {
        let Self { run, result } = self;
        let batch = &group.batch;
        run.become_run(batch.seed, item.index).after(item.attempts).within(batch.timeout);
        result.clear();
        catch_unwind(AssertUnwindSafe(|| group.prepared.run(run, result))).unwrap_or_else(
            |panic| Err(RunError::new(format!("panicked: {}", message(&*panic)))),
        )?;
        Ok(Yield { emitted: run.finish()?, result })
    }
}

/// The verdict on a run that failed.
pub fn failed(group: &Group, item: RetryItem, error: RunError) -> Failed {
    let jitter = mix(group.batch.seed ^ mix(item.index) ^ u64::from(item.attempts));
    Failed::judge(&group.batch.retry, item, error, jitter)
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}
