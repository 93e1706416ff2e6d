//! A line for each step of a chore, and one for all of them.

use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// The steps that a chore has taken so far.
pub struct Steps {
    taken: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// Carries out a chore and sums its steps up in one line.
    pub fn follow(chore: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let mut steps = Self { taken: Vec::new() };
        let start = Instant::now();
        let outcome = chore(&mut steps);
        let word = if outcome.is_ok() { "passed" } else { "failed" };
        eprintln!("{word} in {}: {}", seconds(start.elapsed()), steps.summary());
        outcome
    }

    /// Takes one step and says how long it took.
    pub fn run<T>(&mut self, name: &'static str, step: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let outcome = step();
        let took = start.elapsed();
        self.taken.push((name, took));
        let word = if outcome.is_ok() { "ok" } else { "failed" };
        eprintln!("{name} {word} ({})", seconds(took));
        outcome.context(name)
    }

    fn summary(&self) -> String {
        let step = |(name, took): &(&str, Duration)| format!("{name} {}", seconds(*took));
        self.taken.iter().map(step).collect::<Vec<_>>().join(", ")
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
