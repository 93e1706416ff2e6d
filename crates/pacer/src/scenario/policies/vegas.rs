//! Vegas as Netflix describes it: the queue is what the level is above the product of throughput and
//! shortest round trip. A short queue lets the level grow, a long one or a loss lets it shrink. The
//! shortest round trip is measured anew from time to time.

use super::{Level, Sample, first_level, within};
use crate::Options;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The shortest round trip is measured anew after up to so many samples per level.
const PROBE_MULTIPLIER: f64 = 30.0;

pub(super) struct Vegas {
    options: Options,
    level: f64,
    shortest: Option<f64>,
    samples: f64,
    /// What part of the samples it takes this time.
    part: f64,
    random: ChaCha8Rng,
}

impl Vegas {
    pub fn new(options: &Options, seed: u64) -> Self {
        let level = f64::from(first_level(options));
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let part = random.random_range(0.5..1.0);
        Self { options: options.clone(), level, shortest: None, samples: 0.0, part, random }
    }

    fn adjust(&mut self, shortest: f64, sample: &Sample) {
        let short = sample.round_trip().as_secs_f64();
        let queue = (self.level * (1.0 - shortest / short)).ceil();
        let step = self.level.log10().floor().max(1.0);
        let change = if sample.is_lost() {
            -step
        } else if f64::from(sample.in_flight) * 2.0 < self.level {
            0.0 // the sender is the bottleneck
        } else if queue <= step {
            6.0 * step
        } else if queue < 3.0 * step {
            step
        } else if queue > 6.0 * step {
            -step
        } else {
            0.0
        };
        self.level = within(&self.options, self.level + change);
    }
}

impl Level for Vegas {
    fn level(&self) -> u32 {
        self.level as u32
    }

    fn ended(&mut self, sample: &Sample) {
        let short = sample.round_trip().as_secs_f64();
        self.samples += 1.0;
        if self.part * PROBE_MULTIPLIER * self.level <= self.samples {
            self.part = self.random.random_range(0.5..1.0);
            self.samples = 0.0;
            self.shortest = Some(short);
            return;
        }
        match self.shortest {
            Some(shortest) if shortest <= short => self.adjust(shortest, sample),
            _ => self.shortest = Some(short),
        }
    }
}
