//! Runs that fail on purpose: for drills, and to see how failures look before they are real.

use crate::wait;
use rand::{Rng, RngExt};
use serde::Deserialize;
use std::{thread, time::Duration};
use tidegate_core::{InvalidSnapshot, Run, RunError, Snapshot, Workload};

/// Fails, panics or dies in some of its runs. Which ones, their own streams decide; the others
/// yield the same as [`Noop`](crate::Noop), so that a batch whose retries all succeed has the
/// digest of a `noop` batch with its seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flaky;

/// Which share of the runs goes wrong, and how.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Share of the runs that fail in their first attempts.
    fail: f64,
    /// Share of the runs that panic in their first attempts.
    panic: f64,
    /// Share of the runs that fail for good.
    dead: f64,
    /// How many attempts at a failing or panicking run go wrong.
    attempts: u32,
    /// How long each run sleeps before anything else, in milliseconds.
    ms: f64,
}

impl Default for Faults {
    fn default() -> Self {
        Self { fail: 0.01, panic: 0.0, dead: 0.0, attempts: 1, ms: 0.0 }
    }
}

impl Faults {
    fn check(self) -> Result<Self, InvalidSnapshot> {
        let shares = [("fail", self.fail), ("panic", self.panic), ("dead", self.dead)];
        for (path, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                let problem = format!("{share} is no share of the runs: use 0 to 1");
                return Err(InvalidSnapshot::at(path, problem));
            }
        }
        if self.fail + self.panic + self.dead > 1.0 {
            let problem = "`fail`, `panic` and `dead` together are more than all runs";
            return Err(InvalidSnapshot::at("fail", problem));
        }
        wait::check(self.ms)?;
        Ok(self)
    }

    /// What a run with this luck, from 0 to 1, meets.
    fn fault(&self, luck: f64, attempts: u32) -> Option<Fault> {
        if luck < self.dead {
            Some(Fault::Dead)
        } else if attempts >= self.attempts {
            None
        } else if luck < self.dead + self.panic {
            Some(Fault::Panic)
        } else if luck < self.dead + self.panic + self.fail {
            Some(Fault::Fail)
        } else {
            None
        }
    }
}

enum Fault {
    Fail,
    Panic,
    Dead,
}

impl Workload for Flaky {
    type Prepared = Faults;
    type Output = u32;

    fn name(&self) -> &str {
        "flaky"
    }

    fn about(&self) -> &str {
        "fails, panics or dies in some of its runs: for drills"
    }

    fn example(&self) -> &str {
        include_str!("flaky.toml")
    }

    fn prepare(&self, snapshot: &Snapshot) -> Result<Faults, InvalidSnapshot> {
        snapshot.parse::<Option<Faults>>()?.unwrap_or_default().check()
    }

    fn run(&self, faults: &Faults, run: &mut Run) -> Result<u32, RunError> {
        wait::pass(run, Duration::from_secs_f64(faults.ms / 1e3), thread::sleep)?;
        let value = run.rng().next_u32();
        let luck = run.rng().random();
        match faults.fault(luck, run.attempts()) {
            Some(Fault::Fail) => return Err(RunError::new("failed, as the snapshot asks")),
            Some(Fault::Dead) => return Err(RunError::permanent("died, as the snapshot asks")),
            Some(Fault::Panic) => panic!("panicked, as the snapshot asks"),
            None => run.number("value", value.into()),
        }
        Ok(value)
    }
}
