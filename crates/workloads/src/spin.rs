//! Runs that compute: they scale with cores.

use crate::wait;
use std::{
    hint,
    time::{Duration, Instant},
};
use tidegate_core::{InvalidSnapshot, Run, RunError, Snapshot, Workload};

/// Keeps one core busy for a while.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Workload for Spin {
    type Prepared = Duration;
    type Output = ();

    fn name(&self) -> &str {
        "spin"
    }

    fn about(&self) -> &str {
        "keeps a core busy for some milliseconds, like a run that computes"
    }

    fn example(&self) -> &str {
        "# How long each run keeps its core busy, in milliseconds of wall time.\nms = 1.0\n"
    }

    fn prepare(&self, snapshot: &Snapshot) -> Result<Duration, InvalidSnapshot> {
        wait::parse(snapshot, 1.0)
    }

    fn run(&self, time: &Duration, run: &mut Run) -> Result<(), RunError> {
        wait::pass(run, *time, spin)
    }
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        hint::spin_loop();
    }
}
