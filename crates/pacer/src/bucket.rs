//! A token bucket: so many requests per second, evenly spread, as it was declared.

use crate::Time;
use std::time::Duration;

/// Timers are late by a millisecond or so: a request may start this much before its time.
const SLACK: Duration = Duration::from_millis(5);
/// A rate is kept a little below what was accepted: windows of others are never exactly ours.
const BELOW: f64 = 0.99;

/// Spaces requests.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    /// When the next request would start, if all came evenly.
    next: Time,
}

impl Bucket {
    /// A rate that was declared.
    pub fn declared(per_second: f64) -> Self {
        Self { per_second, next: Time::ZERO }
    }

    /// The service refused: it accepts at most so many. What was declared only gets lower.
    pub fn confirmed(&mut self, per_second: u32) {
        let found = (f64::from(per_second) * BELOW).max(0.1);
        self.per_second = self.per_second.min(found);
    }

    /// What was declared is shared with others.
    pub fn share(&mut self, factor: f64) {
        self.per_second *= factor;
    }

    pub fn per_second(&self) -> f64 {
        self.per_second
    }

    /// Whether a request may start; if not, when.
    pub fn allows(&self, now: Time) -> Result<(), Time> {
        if self.next <= now + SLACK { Ok(()) } else { Err(self.next.saturating_sub(SLACK)) }
    }

    /// A request starts.
    pub fn start(&mut self, now: Time) {
        let space = Duration::from_secs_f64(1.0 / self.per_second);
        self.next = self.next.max(now) + space;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many start within a second, if as many as possible try, every millisecond.
    fn started(bucket: &mut Bucket, from: Time) -> usize {
        let times = (0..1_000).map(|ms| from + Duration::from_millis(ms));
        let mut count = 0;
        for now in times {
            while bucket.allows(now).is_ok() {
                bucket.start(now);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn a_second_holds_as_many_as_declared() {
        for rate in [1.0, 100.0, 5_000.0] {
            let count = started(&mut Bucket::declared(rate), Duration::from_secs(10)) as f64;
            assert!(count >= rate * 0.99 && count <= rate * 1.02 + 1.0, "{count} at {rate}");
        }
    }

    #[test]
    fn a_declared_rate_only_gets_lower() {
        let mut bucket = Bucket::declared(100.0);
        bucket.start(Duration::from_secs(1_000));
        bucket.confirmed(200);
        assert_eq!(bucket.per_second(), 100.0);
        bucket.confirmed(50);
        assert_eq!(bucket.per_second(), 49.5);
    }
}
