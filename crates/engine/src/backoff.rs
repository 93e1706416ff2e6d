//! Pauses between tries of a call that failed.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses that double up to a limit, each spread over its upper half, so that workers that failed
/// together do not come back together.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    noise: u64,
}

impl Backoff {
    /// `noise` is any number that differs between workers.
    pub fn new(noise: u64) -> Self {
        Self { next: FIRST, noise }
    }

    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        self.noise = mix(self.noise);
        let half = self.next / 2;
        self.next = (self.next * 2).min(LONGEST);
        half + half.mul_f64((self.noise >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// After a success the next pause is a short one.
    pub fn reset(&mut self) {
        self.next = FIRST;
    }
}

/// A number that looks unrelated to the one it was made from (SplitMix64).
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_start_over() {
        let mut backoff = Backoff::new(7);
        assert!(backoff.pause() <= FIRST);
        let later = (0..20).map(|_| backoff.pause()).last().unwrap();
        assert!(later >= LONGEST / 2 && later <= LONGEST);
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }
}
