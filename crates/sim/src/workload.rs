//! A workload whose every run is known beforehand.

use rand::{Rng, RngExt};
use std::{collections::BTreeSet, time::Duration};
use tidegate_core::{Aggregates, InvalidSnapshot, Run, RunError, Snapshot, Workload};

/// What the runs of a batch do.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// The share of runs that fail at first, one to four times.
    pub fail: f64,
    /// The share of runs that fail for good at once.
    pub permanent: f64,
    /// How long runs take, up to.
    pub micros: u64,
    /// The run that ends its worker, each time.
    pub deadly: Option<u64>,
}

/// What one run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Fails this often before it succeeds; `None`: for good.
    pub failures: Option<u32>,
    /// What it yields then.
    pub value: u32,
}

impl Behaviour {
    /// What run `index` of a batch with `seed` does.
    pub fn of(&self, run: &mut Run) -> Expected {
        let rng = run.rng();
        let value = rng.next_u32();
        let permanent = rng.random_bool(self.permanent);
        let failing = rng.random_bool(self.fail);
        let failures = if failing { rng.random_range(1..=4) } else { 0 };
        Expected { failures: (!permanent).then_some(failures), value }
    }

    /// How long the run takes.
    pub fn duration(&self, index: u64) -> Duration {
        Duration::from_micros(1 + (index * 7_919) % self.micros)
    }

    /// The failed attempts with which a run ends dead, or `None` if it succeeds.
    pub fn dead_after(expected: Expected, max_attempts: u32) -> Option<u32> {
        match expected.failures {
            None => Some(1),
            Some(failures) if failures >= max_attempts => Some(max_attempts),
            Some(_) => None,
        }
    }

    /// What the aggregates of a batch must be, without the runs that were given up.
    pub fn aggregates(
        &self,
        seed: u64,
        runs: u64,
        max_attempts: u32,
        given_up: &BTreeSet<u64>,
    ) -> Aggregates {
        let mut aggregates = Aggregates::default();
        for index in (0..runs).filter(|index| !given_up.contains(index)) {
            let mut run = Run::new(seed, index);
            let expected = self.of(&mut run);
            if Self::dead_after(expected, max_attempts).is_none() {
                emit(&mut run, expected.value);
                let emitted = run.finish().expect("it emits little");
                aggregates.add(index, expected.value.to_string().as_bytes(), emitted);
            }
        }
        aggregates
    }
}

fn emit(run: &mut Run, value: u32) {
    run.number("value", f64::from(value) / 3.0);
    run.category("parity", if value.is_multiple_of(2) { "even" } else { "odd" });
}

/// The workload named after the batch's place in the plan.
pub struct Simulated {
    /// Its name.
    pub name: String,
    /// What its runs do.
    pub behaviour: Behaviour,
}

impl Workload for Simulated {
    type Prepared = ();
    type Output = u32;

    fn name(&self) -> &str {
        &self.name
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), run: &mut Run) -> Result<u32, RunError> {
        let expected = self.behaviour.of(run);
        match expected.failures {
            None => Err(RunError::permanent("cannot succeed")),
            Some(failures) if run.attempts() < failures => Err(RunError::new("not yet")),
            Some(_) => {
                emit(run, expected.value);
                Ok(expected.value)
            }
        }
    }
}
