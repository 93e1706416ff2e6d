//! Runs that wait: they scale with workers, not with cores.

use crate::wait;
use std::{thread, time::Duration};
use tidegate_core::{InvalidSnapshot, Run, RunError, Snapshot, Workload};

/// Sleeps for a while.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sleep;

impl Workload for Sleep {
    type Prepared = Duration;
    type Output = ();

    fn name(&self) -> &str {
        "sleep"
    }

    fn about(&self) -> &str {
        "sleeps for some milliseconds, like a run that waits for others"
    }

    fn example(&self) -> &str {
        "# How long each run sleeps, in milliseconds.\nms = 5.0\n"
    }

    fn prepare(&self, snapshot: &Snapshot) -> Result<Duration, InvalidSnapshot> {
        wait::parse(snapshot, 5.0)
    }

    fn run(&self, time: &Duration, run: &mut Run) -> Result<(), RunError> {
        wait::pass(run, *time, thread::sleep)
    }
}
