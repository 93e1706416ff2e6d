//! The least that a run can do: what is left to measure is Tidegate itself.

use rand::Rng;
use serde::Deserialize;
use tidegate_core::{InvalidSnapshot, Run, RunError, Snapshot, Workload};

/// Draws one number and yields it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noop;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Workload for Noop {
    type Prepared = ();
    type Output = u32;

    fn name(&self) -> &str {
        "noop"
    }

    fn about(&self) -> &str {
        "draws one number: measures the cost of everything but the run"
    }

    fn prepare(&self, snapshot: &Snapshot) -> Result<(), InvalidSnapshot> {
        snapshot.parse::<Option<Nothing>>().map(drop)
    }

    fn run(&self, (): &(), run: &mut Run) -> Result<u32, RunError> {
        let value = run.rng().next_u32();
        run.number("value", value.into());
        Ok(value)
    }
}
