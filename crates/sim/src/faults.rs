//! What calls to a store may meet.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// How often, and how badly, a worker's calls go wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The share of calls that fail, half of them after they took effect.
    pub failing: f64,
    /// Calls take up to this long on either side of taking effect.
    pub delay: Duration,
    /// The share of calls that take fifty times as long.
    pub slow: f64,
}

impl Faults {
    /// Some world's network.
    pub fn random(rng: &mut ChaCha8Rng) -> Self {
        Self {
            failing: [0.0, 0.02, 0.2][rng.random_range(0..3)],
            delay: Duration::from_micros([100, 2_000, 20_000][rng.random_range(0..3)]),
            slow: [0.0, 0.05][rng.random_range(0..2)],
        }
    }

    /// How long one leg of a call takes.
    pub fn leg(&self, rng: &mut ChaCha8Rng) -> Duration {
        let longest = self.delay.as_micros() as u64 + 1;
        let factor = if rng.random_bool(self.slow) { 50 } else { 1 };
        Duration::from_micros(1 + rng.random_range(0..longest) * factor)
    }

    /// Whether a call fails here.
    pub fn strikes(&self, rng: &mut ChaCha8Rng) -> bool {
        rng.random_bool(self.failing / 2.0)
    }
}
