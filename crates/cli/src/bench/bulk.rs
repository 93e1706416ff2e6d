//! Runs that cost little and yield much, so that writing is what is measured.

use serde::Serialize;
use tidegate::{InvalidSnapshot, Run, RunError, Snapshot, Workload};

/// The name of [`Bulk`].
pub const NAME: &str = "bulk";
/// Enough for a stable rate, few enough to leave in a store: 30 MB.
pub const RUNS: u64 = 30_000;
/// Numbers in a result. Together they make a kilobyte of JSON, and hardly compress.
const NUMBERS: u64 = 49;

/// Yields numbers without order. Known to the bench only.
pub struct Bulk;

#[derive(Serialize)]
pub struct Numbers {
    values: Vec<u64>,
}

impl Workload for Bulk {
    type Prepared = ();
    type Output = Numbers;

    fn name(&self) -> &str {
        NAME
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), run: &mut Run) -> Result<Numbers, RunError> {
        // Odd, so that all products differ.
        let step = run.seed() | 1;
        Ok(Numbers { values: (1..=NUMBERS).map(|n| step.wrapping_mul(n)).collect() })
    }
}
