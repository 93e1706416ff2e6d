//! A limit that was found: stay just below, and look above it rarely.

use crate::Time;
use std::time::Duration;

/// The first look above a ceiling comes this long after it was found …
const FIRST_PROBE: Duration = Duration::from_secs(10);
/// … and at least so many times later as a rejection costs: looking takes a fiftieth of the time.
const PROBE_COSTS: u32 = 50;
/// Looks are never further apart than this.
const LAST_PROBE: Duration = Duration::from_secs(900);

/// The most that is known to be accepted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ceiling {
    pub at: u32,
    /// How much further the next look goes: doubled after each one that succeeded.
    step: u32,
    failures: u32,
    probe_at: Time,
    /// Rejections with no more in flight than this.
    surprises: u32,
}

impl Ceiling {
    /// Found now; a rejection costs so much time.
    pub fn found(at: u32, cost: Duration, now: Time) -> Self {
        let mut ceiling = Self { at, step: 1, failures: 0, probe_at: now, surprises: 0 };
        ceiling.wait(cost, now);
        ceiling
    }

    /// The service rejected with so much in flight. Returns whether the ceiling does not explain that.
    /// Near the ceiling it may, once: what is under way is in flight for us and not for the service.
    pub fn is_refuted_by(&mut self, in_flight: u32) -> bool {
        self.surprises += u32::from(in_flight <= self.at);
        self.surprises > 1 || in_flight < self.at - self.at / 4
    }

    /// Whether another limit is about the same.
    pub fn is_near(&self, at: u32) -> bool {
        at.abs_diff(self.at) <= 1 + self.at / 4
    }

    /// The level to look at, if it is time for a look.
    pub fn probe(&self, now: Time) -> Option<u32> {
        (now >= self.probe_at).then(|| self.at.saturating_add(self.step))
    }

    /// A look was accepted: the ceiling is higher than it was known to be. The next look goes further,
    /// and may come as soon as the level is stable.
    pub fn raised(&mut self, to: u32, now: Time) {
        self.at = to;
        self.step = self.step.saturating_mul(2);
        self.failures = 0;
        self.surprises = 0;
        self.probe_at = now;
    }

    /// It is lower than it seemed at first.
    pub fn lowered(&mut self, at: u32) {
        self.at = self.at.min(at);
    }

    /// The service rejected again, at a limit of `at`.
    pub fn confirmed(&mut self, at: u32, cost: Duration, now: Time) {
        self.at = at;
        self.step = 1;
        self.failures += 1;
        self.wait(cost, now);
    }

    fn wait(&mut self, cost: Duration, now: Time) {
        let first = FIRST_PROBE.max(cost.saturating_mul(PROBE_COSTS));
        self.probe_at = now + first.saturating_mul(1 << self.failures.min(16)).min(LAST_PROBE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY_AFTER: Duration = Duration::from_secs(2);

    #[test]
    fn looks_come_longer_apart_after_each_failure() {
        let mut ceiling = Ceiling::found(5, Duration::from_millis(100), Time::ZERO);
        let mut now = Time::ZERO;
        for wait in [10, 20, 40, 80] {
            assert_eq!(ceiling.probe(now + Duration::from_secs(wait - 1)), None);
            now += Duration::from_secs(wait);
            assert_eq!(ceiling.probe(now), Some(6));
            ceiling.confirmed(5, Duration::from_millis(100), now);
        }
    }

    #[test]
    fn dear_rejections_are_asked_for_rarely() {
        let ceiling = Ceiling::found(20, RETRY_AFTER, Time::ZERO);
        assert_eq!(ceiling.probe(Duration::from_secs(99)), None);
        assert_eq!(ceiling.probe(Duration::from_secs(100)), Some(21));
        let ceiling = Ceiling::found(20, Duration::from_secs(3_600), Time::ZERO);
        assert_eq!(ceiling.probe(LAST_PROBE), Some(21));
    }

    #[test]
    fn a_rejection_far_below_or_again_refutes_it() {
        let mut ceiling = Ceiling::found(20, RETRY_AFTER, Time::ZERO);
        assert!(!ceiling.is_refuted_by(21) && !ceiling.is_refuted_by(19));
        assert!(ceiling.is_refuted_by(19));
        assert!(Ceiling::found(20, RETRY_AFTER, Time::ZERO).is_refuted_by(14));
    }

    #[test]
    fn steps_double_while_they_succeed() {
        let mut ceiling = Ceiling::found(5, RETRY_AFTER, Time::ZERO);
        for (at, next) in [(6, 8), (8, 12), (12, 20), (20, 36)] {
            ceiling.raised(at, Time::ZERO);
            assert_eq!(ceiling.probe(Time::ZERO), Some(next));
        }
    }
}
