//! A token bucket: so many requests per second, evenly spread.

use crate::Time;
use std::time::Duration;

/// Timers are late by a millisecond or so: a request may start this much before its time.
const SLACK: Duration = Duration::from_millis(5);
/// A learned rate is tried a little higher after so long without a rejection …
const FIRST_RAISE: Duration = Duration::from_secs(10);
/// … and each time it proves wrong, later.
const LAST_RAISE: Duration = Duration::from_secs(900);
/// By how much it is raised at first, and twice as much after each raise that proves right.
const RAISE: f64 = 0.05;
/// A rate of which less than this is used is not raised: nobody would know whether it is right.
const USED: f64 = 0.8;
/// A rate is kept a little below what was accepted: windows of others are never exactly ours.
const BELOW: f64 = 0.99;

/// Spaces requests.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    /// When the next request would start, if all came evenly.
    next: Time,
    learned: Option<Learned>,
}

#[derive(Clone, Debug)]
struct Learned {
    failures: u32,
    raise: f64,
    raise_at: Time,
    /// When it was raised last, and how many requests started since.
    since: Time,
    started: u32,
}

impl Learned {
    /// Whether a higher rate would be used: most of what this one allows was.
    fn is_used(&self, per_second: f64, now: Time) -> bool {
        let allowed = per_second * now.saturating_sub(self.since).as_secs_f64();
        f64::from(self.started) >= USED * allowed
    }
}

impl Bucket {
    /// A rate that was declared: it stays.
    pub fn declared(per_second: f64) -> Self {
        Self { per_second, next: Time::ZERO, learned: None }
    }

    /// A rate that was learned: it is tried again, a little higher, from time to time.
    pub fn learned(per_second: u32, now: Time) -> Self {
        let raise_at = now + FIRST_RAISE;
        let learned = Learned { failures: 0, raise: RAISE, raise_at, since: now, started: 0 };
        let per_second = (f64::from(per_second) * BELOW).max(0.1);
        Self { per_second, next: now, learned: Some(learned) }
    }

    /// The rate was found again. A declared one only gets lower.
    pub fn confirmed(&mut self, per_second: u32, now: Time) {
        let found = (f64::from(per_second) * BELOW).max(0.1);
        self.per_second = self.per_second.min(found);
        if let Some(learned) = &mut self.learned {
            learned.failures += 1;
            learned.raise = RAISE;
            let wait = FIRST_RAISE.saturating_mul(1 << learned.failures.min(16));
            learned.raise_at = now + wait.min(LAST_RAISE);
            (learned.since, learned.started) = (now, 0);
        }
    }

    /// A declared rate is shared with others; a learned one was learned with them at work.
    pub fn share(&mut self, factor: f64) {
        if self.learned.is_none() {
            self.per_second *= factor;
        }
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
        if let Some(learned) = &mut self.learned {
            learned.started += 1;
            if now >= learned.raise_at {
                if learned.is_used(self.per_second, now) {
                    self.per_second *= 1.0 + learned.raise;
                    learned.raise *= 2.0;
                }
                learned.raise_at = now + FIRST_RAISE;
                (learned.since, learned.started) = (now, 0);
            }
        }
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
    fn a_learned_rate_is_tried_higher_later_and_later() {
        let mut bucket = Bucket::learned(100, Time::ZERO);
        assert!((0..10).all(|second| started(&mut bucket, Duration::from_secs(second)) > 90));
        assert_eq!(bucket.per_second(), 99.0);
        bucket.start(Duration::from_secs(10));
        assert!(bucket.per_second() > 100.0);
        bucket.confirmed(100, Duration::from_secs(10));
        assert!((10..30).all(|second| started(&mut bucket, Duration::from_secs(second)) > 90));
        assert_eq!(bucket.per_second(), 99.0);
        bucket.start(Duration::from_secs(30));
        assert!(bucket.per_second() > 100.0);
    }

    #[test]
    fn a_rate_that_nobody_uses_is_not_raised() {
        let mut bucket = Bucket::learned(100, Time::ZERO);
        (0..1_000).for_each(|second| bucket.start(Duration::from_secs(second)));
        assert_eq!(bucket.per_second(), 99.0);
    }

    #[test]
    fn a_declared_rate_stays() {
        let mut bucket = Bucket::declared(100.0);
        bucket.start(Duration::from_secs(1_000));
        bucket.start(Duration::from_secs(2_000));
        assert_eq!(bucket.per_second(), 100.0);
    }
}
