//! How long ranges should be: learned from how long runs take.

use std::{collections::HashMap, time::Duration};
use tidegate_core::{
    BatchId,
    claim::{Length, Lengths},
    limits::MAX_RANGE_LENGTH,
};

/// The first ranges of an unknown batch are short: its runs may take hours.
const FIRST: u64 = 4;
/// Ranges grow by at most this factor per observation: one fast run proves little.
const GROWTH: u64 = 64;
/// Near a batch's end ranges shrink down to this share of the target, not further: below it, claims
/// would cost more than they balance.
const LEAST_SHARE: f64 = 0.01;
/// Runs that take longer than this are not leased ahead: another worker may be idle.
const SHORT_RUN: Duration = Duration::from_millis(50);

/// Knows how long the runs of each batch take.
#[derive(Debug)]
pub struct LengthTuner {
    target: Duration,
    fixed: Option<u64>,
    batches: HashMap<BatchId, Experience>,
}

#[derive(Clone, Copy, Debug)]
struct Experience {
    seconds_per_run: f64,
    /// The most runs that were observed at once.
    observed: u64,
}

impl LengthTuner {
    /// Aims at ranges that take `target`, unless a length is fixed.
    pub fn new(target: Duration, fixed: Option<u64>) -> Self {
        Self { target, fixed, batches: HashMap::new() }
    }

    /// Learns that `runs` runs of a batch took `busy` in all.
    pub fn observe(&mut self, batch: BatchId, runs: u64, busy: Duration) {
        let sample = busy.as_secs_f64() / runs.max(1) as f64;
        let known = self
            .batches
            .entry(batch)
            .or_insert(Experience { seconds_per_run: sample, observed: runs });
        known.seconds_per_run = 0.7 * known.seconds_per_run + 0.3 * sample;
        known.observed = known.observed.max(runs);
    }

    /// Forgets batches that are closed.
    pub fn forget(&mut self, batch: BatchId) {
        self.batches.remove(&batch);
    }

    /// Whether it is known that all runs seen are so short that leasing ahead holds up nobody.
    pub fn runs_are_short(&self) -> bool {
        let short = |known: &Experience| known.seconds_per_run < SHORT_RUN.as_secs_f64();
        !self.batches.is_empty() && self.batches.values().all(short)
    }

    /// The lengths to ask for.
    pub fn lengths(&self) -> Lengths {
        if let Some(length) = self.fixed {
            let fixed = Length { most: length, least: length };
            return Lengths { unknown: fixed, known: Vec::new() };
        }
        let known = self.batches.iter().map(|(batch, known)| (*batch, self.length(known)));
        Lengths { unknown: Length { most: FIRST, least: 1 }, known: known.collect() }
    }

    fn length(&self, known: &Experience) -> Length {
        let ideal = self.target.as_secs_f64() / known.seconds_per_run.max(1e-9);
        let most = (ideal as u64).clamp(1, (known.observed * GROWTH).clamp(1, MAX_RANGE_LENGTH));
        let least = ((ideal * LEAST_SHARE) as u64).clamp(1, most);
        Length { most, least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: BatchId = BatchId(1);

    #[test]
    fn lengths_approach_the_target() {
        let mut tuner = LengthTuner::new(Duration::from_secs(1), None);
        assert_eq!(tuner.lengths().of(BATCH).most, FIRST);
        for _ in 0..8 {
            let length = tuner.lengths().of(BATCH).most;
            tuner.observe(BATCH, length, Duration::from_micros(10) * length as u32);
        }
        assert_eq!(tuner.lengths().of(BATCH), Length { most: 100_000, least: 1_000 });
    }

    #[test]
    fn long_runs_are_leased_one_by_one() {
        let mut tuner = LengthTuner::new(Duration::from_secs(1), None);
        assert!(!tuner.runs_are_short());
        tuner.observe(BATCH, 1, Duration::from_secs(600));
        assert_eq!(tuner.lengths().of(BATCH), Length { most: 1, least: 1 });
        assert!(!tuner.runs_are_short());
    }

    #[test]
    fn a_fixed_length_does_not_move() {
        let mut tuner = LengthTuner::new(Duration::from_secs(1), Some(7));
        tuner.observe(BATCH, 7, Duration::from_secs(600));
        assert_eq!(tuner.lengths().of(BATCH), Length { most: 7, least: 7 });
    }
}
