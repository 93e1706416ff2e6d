//! Decisions that depend on what they are about, and not on how many were made before.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// A source of chance for one decision.
pub fn dice(seed: u64, about: [u64; 3]) -> ChaCha8Rng {
    let mix = |hash: u64, part: &u64| {
        let z = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z ^ (z >> 29)
    };
    ChaCha8Rng::seed_from_u64(about.iter().fold(seed, mix))
}

/// So many milliseconds.
pub fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}
