//! What happens to an item after its own failure: pure arithmetic.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Exponential backoff with jitter, up to a number of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// After this many failed attempts the run is dead.
    pub max_attempts: u32,
    /// Delay after the first failure; each further one doubles it.
    pub base: Duration,
    /// The delay never exceeds this.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 5, base: Duration::from_millis(500), cap: Duration::from_secs(300) }
    }
}

impl RetryPolicy {
    /// The delay before the next attempt after `attempts` have failed, or `None` if that was the
    /// last. `jitter` is any number that differs between items: it spreads them over the upper
    /// half of the delay, so that items that failed together do not come back together.
    pub fn delay(&self, attempts: u32, jitter: u64) -> Option<Duration> {
        if attempts >= self.max_attempts {
            return None;
        }
        let doublings = attempts.saturating_sub(1).min(31);
        let full = self.base.saturating_mul(1 << doublings).min(self.cap);
        let half = full / 2;
        Some(half + half.mul_f64((jitter >> 11) as f64 / (1u64 << 53) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_within_its_jitter_and_ends() {
        let policy = RetryPolicy::default();
        for (attempts, full_ms) in [(1, 500), (2, 1_000), (3, 2_000), (4, 4_000)] {
            let full = Duration::from_millis(full_ms);
            assert_eq!(policy.delay(attempts, 0), Some(full / 2));
            let longest = policy.delay(attempts, u64::MAX).unwrap();
            assert!(longest > full.mul_f64(0.99) && longest <= full);
        }
        assert_eq!(policy.delay(5, 0), None);
    }

    #[test]
    fn stays_below_its_cap() {
        let policy = RetryPolicy { max_attempts: 1_000, ..RetryPolicy::default() };
        assert!(policy.delay(900, u64::MAX).unwrap() <= policy.cap);
    }
}
