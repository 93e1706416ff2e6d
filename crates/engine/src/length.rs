//! How long ranges should be: learned from how long runs take.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};
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
const LEAST_SHARE: f64 = 0.03;
/// Batches remembered at the same time: they are sent with every claim.
const MAX_BATCHES: usize = 64;
/// Runs that take longer than this are not leased ahead: another worker may be idle.
const SHORT_RUN: Duration = Duration::from_millis(50);

/// Knows how long the runs of each batch take.
#[derive(Debug)]
pub struct LengthTuner {
    target: Duration,
    fixed: Option<u64>,
    grain: u64,
    batches: HashMap<BatchId, Experience>,
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Experience {
    seconds_per_run: f64,
    /// The most runs that were observed at once.
    observed: u64,
    /// When it was last observed.
    at: u64,
}

impl LengthTuner {
    /// Aims at ranges that take `target`, unless a length is fixed, in multiples of `grain`.
    pub fn new(target: Duration, fixed: Option<u64>, grain: u64) -> Self {
        Self {
            target,
            fixed,
            grain: grain.clamp(1, MAX_RANGE_LENGTH),
            batches: HashMap::new(),
            clock: 0,
        }
    }

    /// Learns that `runs` runs of a batch took `busy` in all.
    pub fn observe(&mut self, batch: BatchId, runs: u64, busy: Duration) {
        let sample = busy.as_secs_f64() / runs.max(1) as f64;
        let known = self.batches.entry(batch).or_insert(Experience {
            seconds_per_run: sample,
            observed: runs,
            at: 0,
        });
        self.clock += 1;
        known.at = self.clock;
        known.seconds_per_run = 0.7 * known.seconds_per_run + 0.3 * sample;
        known.observed = known.observed.max(runs);
        if self.batches.len() > MAX_BATCHES {
            let oldest = self.batches.iter().min_by_key(|(_, known)| known.at).map(|(id, _)| *id);
            oldest.map(|batch| self.batches.remove(&batch));
        }
    }

    /// Whether it is known that the runs of all these batches are so short that leasing ahead holds
    /// up nobody.
    pub fn runs_are_short(&self, batches: &BTreeSet<BatchId>) -> bool {
        let short = |batch| {
            let known: Option<&Experience> = self.batches.get(batch);
            known.is_some_and(|known| known.seconds_per_run < SHORT_RUN.as_secs_f64())
        };
        !batches.is_empty() && batches.iter().all(short)
    }

    /// The lengths to ask for.
    pub fn lengths(&self) -> Lengths {
        if let Some(length) = self.fixed {
            let length = length.clamp(1, MAX_RANGE_LENGTH);
            let fixed = Length { most: length, least: length };
            return Lengths { unknown: fixed, known: Vec::new() };
        }
        let known = self.batches.iter().map(|(batch, known)| (*batch, self.length(known)));
        let unknown = Length { most: self.whole(FIRST), least: self.grain };
        Lengths { unknown, known: known.collect() }
    }

    fn length(&self, known: &Experience) -> Length {
        let ideal = self.target.as_secs_f64() / known.seconds_per_run.max(1e-9);
        let most = (ideal as u64).clamp(1, (known.observed * GROWTH).clamp(1, MAX_RANGE_LENGTH));
        // A grain that is cut by the end of a range is a request that carries too little.
        let least = match self.grain {
            1 => ((ideal * LEAST_SHARE) as u64).clamp(1, most),
            _ => most,
        };
        Length { most: self.whole(most), least: self.whole(least) }
    }

    /// Rounded to whole grains, and at least one.
    fn whole(&self, length: u64) -> u64 {
        (length / self.grain).max(1) * self.grain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: BatchId = BatchId(1);

    #[test]
    fn lengths_approach_the_target() {
        let mut tuner = LengthTuner::new(Duration::from_secs(1), None, 1);
        assert_eq!(tuner.lengths().of(BATCH).most, FIRST);
        for _ in 0..8 {
            let length = tuner.lengths().of(BATCH).most;
            tuner.observe(BATCH, length, Duration::from_micros(10) * length as u32);
        }
        assert_eq!(tuner.lengths().of(BATCH), Length { most: 100_000, least: 3_000 });
    }

    #[test]
    fn long_runs_are_leased_one_by_one() {
        let mut tuner = LengthTuner::new(Duration::from_secs(1), None, 1);
        tuner.observe(BATCH, 1, Duration::from_secs(600));
        assert_eq!(tuner.lengths().of(BATCH), Length { most: 1, least: 1 });
        tuner.observe(BatchId(2), 1, Duration::from_millis(1));
        assert!(!tuner.runs_are_short(&BTreeSet::from([BATCH, BatchId(2)])));
        assert!(tuner.runs_are_short(&BTreeSet::from([BatchId(2)])));
    }

    #[test]
    fn old_batches_are_forgotten() {
        let mut tuner = LengthTuner::new(Duration::from_secs(1), None, 1);
        (0..1_000).for_each(|id| tuner.observe(BatchId(id), 1, Duration::from_millis(1)));
        assert_eq!(tuner.lengths().known.len(), MAX_BATCHES);
        assert!(tuner.lengths().known.iter().any(|(id, _)| *id == BatchId(999)));
    }

    #[test]
    fn lengths_are_whole_grains() {
        let mut tuner = LengthTuner::new(Duration::from_secs(1), None, 10);
        assert_eq!(tuner.lengths().of(BATCH), Length { most: 10, least: 10 });
        tuner.observe(BATCH, 10, Duration::from_millis(70));
        assert_eq!(tuner.lengths().of(BATCH), Length { most: 140, least: 140 });
    }

    #[test]
    fn a_fixed_length_does_not_move() {
        let mut tuner = LengthTuner::new(Duration::from_secs(1), Some(7), 1);
        tuner.observe(BATCH, 7, Duration::from_secs(600));
        assert_eq!(tuner.lengths().of(BATCH), Length { most: 7, least: 7 });
    }
}
