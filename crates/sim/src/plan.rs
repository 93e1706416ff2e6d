//! What a seed decides before anything runs.

use crate::{Faults, workload::Behaviour};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;
use tidegate_core::{Keep, RetryPolicy};

/// One simulated world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Decides all that happens by chance while it runs.
    pub seed: u64,
    /// What is submitted.
    pub batches: Vec<BatchPlan>,
    /// Who works on it, beside the healthy worker that comes last.
    pub workers: Vec<WorkerPlan>,
    /// When the store goes back in time, one after the other.
    pub travels: Vec<Travel>,
}

/// A store that loses its last transactions while workers live.
#[derive(Clone, Copy, Debug)]
pub struct Travel {
    /// What it holds after this time, counted from the end of the travel before …
    pub after: Duration,
    /// … is all that it holds again when so much time has passed.
    pub lost: Duration,
}

/// A batch to submit.
#[derive(Clone, Debug)]
pub struct BatchPlan {
    /// How many runs.
    pub runs: u64,
    /// Their seed.
    pub seed: u64,
    /// Which results are stored.
    pub keep: Keep,
    /// What happens to failed runs.
    pub retry: RetryPolicy,
    /// What its runs do.
    pub behaviour: Behaviour,
}

/// A worker and what happens to it.
#[derive(Clone, Debug)]
pub struct WorkerPlan {
    /// Runs at the same time.
    pub hands: usize,
    /// Flush at this many runs.
    pub flush_runs: u64,
    /// Flush after this time.
    pub flush_after: Duration,
    /// A fixed range length, or one that tunes itself.
    pub range_length: Option<u64>,
    /// How long leases last.
    pub lease: Duration,
    /// When it starts.
    pub starts_at: Duration,
    /// What its store does wrong.
    pub faults: Faults,
    /// How it ends.
    pub fate: Fate,
}

/// How a worker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// When nothing is left to do.
    Lives,
    /// Without a word, when it has been polled this often.
    Crashes {
        /// After this many polls.
        polls: u64,
    },
    /// Not polled for a while, as under SIGSTOP; then it goes on.
    Freezes {
        /// After this many polls.
        polls: u64,
        /// For this long.
        length: Duration,
    },
    /// Asked to stop.
    Stops {
        /// At this time.
        at: Duration,
    },
}

impl Plan {
    /// The world of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut batches: Vec<_> = (0..rng.random_range(1..=3)).map(|_| batch(&mut rng)).collect();
        let workers = (0..rng.random_range(1..=4)).map(|_| worker(&mut rng)).collect();
        for batch in &mut batches {
            let deadly = rng.random_bool(0.15).then(|| rng.random_range(0..batch.runs));
            batch.behaviour.deadly = deadly;
        }
        let travels = if rng.random_bool(0.4) { rng.random_range(1..4) } else { 0 };
        let travels = (0..travels).map(|_| Travel {
            after: ms(&mut rng, 0..1_500),
            lost: Duration::from_micros(rng.random_range(1..600_000)),
        });
        Self { seed, batches, workers, travels: travels.collect() }
    }
}

fn ms(rng: &mut ChaCha8Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.random_range(range))
}

fn batch(rng: &mut ChaCha8Rng) -> BatchPlan {
    let runs = if rng.random_bool(0.2) { 1 } else { rng.random_range(2..400) };
    BatchPlan {
        runs,
        seed: rng.next_u64(),
        keep: [Keep::All, Keep::All, Keep::None, Keep::Sample(1 + runs / 3)]
            [rng.random_range(0..4)],
        retry: RetryPolicy {
            max_attempts: rng.random_range(1..4),
            base: Duration::from_millis(rng.random_range(0..200)),
            cap: Duration::from_millis(400),
        },
        behaviour: Behaviour {
            fail: [0.0, 0.05, 0.5][rng.random_range(0..3)],
            permanent: [0.0, 0.02][rng.random_range(0..2)],
            micros: [1, 100, 5_000, 60_000][rng.random_range(0..4)],
            deadly: None,
        },
    }
}

fn worker(rng: &mut ChaCha8Rng) -> WorkerPlan {
    WorkerPlan {
        hands: rng.random_range(1..=3),
        flush_runs: [1, 7, 50, 1_000][rng.random_range(0..4)],
        flush_after: ms(rng, 1..300),
        range_length: [None, None, Some(1), Some(10), Some(1_000)][rng.random_range(0..5)],
        lease: ms(rng, 100..2_000),
        starts_at: ms(rng, 0..500),
        faults: Faults::random(rng),
        fate: match rng.random_range(0..5) {
            0 => Fate::Lives,
            1 | 2 => Fate::Crashes { polls: rng.random_range(1..200) },
            3 => Fate::Freezes { polls: rng.random_range(1..200), length: ms(rng, 50..6_000) },
            _ => Fate::Stops { at: ms(rng, 0..2_000) },
        },
    }
}
