//! When one request is tried above a ceiling.
//!
//! What a service accepts may rise at any time, so probes never end. But each may be refused: they
//! are so many accepted requests apart, and after many that were refused in a row a little further.

use crate::Time;
use std::time::Duration;

/// Probes are so many accepted requests apart …
const ACCEPTED: u32 = 900;
/// … at least so many round trips …
const ROUND_TRIPS: u32 = 4;
/// … or, of a slow service, so many …
const SLOW_ROUND_TRIPS: u32 = 12;
/// … or so many accepted requests, …
const SLOW_ACCEPTED: f64 = 50.0;
/// … at most this long …
const FIRST: Duration = Duration::from_secs(4);
/// … and about this share of the time since the ceiling was last found to be higher or lower.
const HELD_SHARE: f64 = 0.4;
/// After so many that were refused, …
const MANY: i32 = 7;
/// … each waits this much longer than the one before, …
const LONGER: f64 = 1.5;
/// … but never longer than this,
const LONGEST: Duration = Duration::from_secs(120);
/// but so many times what a refusal costs: probes take a fiftieth of the time.
const COSTS: u32 = 50;

/// A refusal that follows from a probe is paid for by so many accepted requests, …
const PAID: f64 = 100.0;
/// … but all of them together by this at most …
const OWED: Duration = Duration::from_secs(10);
/// … or by so many round trips.
const OWED_ROUND_TRIPS: u32 = 40;

/// When the next probe is due, and how far it leads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Probes {
    due: Time,
    /// By how much the next one raises the ceiling if it is accepted.
    step: u32,
    /// When the ceiling was found, or found to be higher.
    since: Time,
    /// More was accepted before: it is tried sooner.
    fell: bool,
    /// How many in a row were refused.
    refused: i32,
}

/// How fast the service answers, and what a refusal costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    pub round_trip: Duration,
    pub per_second: f64,
    pub cost: Duration,
}

impl Probes {
    /// Of a ceiling that is found now. If the service fell to it, it may return soon.
    pub fn begin(fell: bool, speed: Speed, now: Time) -> Self {
        let mut probes = Self { due: now, step: 1, since: now, fell, refused: 0 };
        probes.wait(speed, now);
        probes
    }

    pub fn is_due(&self, now: Time) -> bool {
        now >= self.due
    }

    /// The probe was accepted. Returns by how much that raises the ceiling; the next one follows at once.
    pub fn accepted(&mut self, ceiling: u32, now: Time) -> u32 {
        let step = self.step;
        self.step = (2 * step).min(1 + ceiling / 2);
        (self.since, self.due, self.refused) = (now, now, 0);
        step
    }

    /// One was accepted, but what followed was refused: nothing has returned.
    pub fn in_vain(&mut self, speed: Speed, now: Time) {
        self.fell = false;
        self.refused(speed, now);
    }

    /// The probe was refused.
    pub fn refused(&mut self, speed: Speed, now: Time) {
        self.step = 1;
        self.wait(speed, now);
    }

    /// What followed from a probe cost one refusal more: the next one comes so much later.
    pub fn postpone(&mut self, speed: Speed, now: Time) {
        if !self.fell {
            let paid = Duration::from_secs_f64(PAID / speed.per_second.max(1e-3));
            let latest = now + OWED.max(speed.round_trip * OWED_ROUND_TRIPS);
            self.due = (self.due + paid).min(latest).max(self.due);
        }
    }

    fn wait(&mut self, speed: Speed, now: Time) {
        let few = Duration::from_secs_f64(SLOW_ACCEPTED / speed.per_second.max(1e-3));
        let slow =
            if self.fell { Duration::ZERO } else { few.min(speed.round_trip * SLOW_ROUND_TRIPS) };
        let least = slow.max(speed.round_trip * ROUND_TRIPS);
        let accepted = Duration::from_secs_f64(f64::from(ACCEPTED) / speed.per_second.max(1.0));
        let held = now.saturating_sub(self.since).mul_f64(HELD_SHARE);
        let soon = if self.fell { held } else { accepted.max(held) }.min(FIRST);
        self.refused += i32::from(soon == FIRST);
        let longer = LONGER.powi((self.refused - MANY).clamp(0, 16));
        let wait = soon.max(least).mul_f64(longer).min(LONGEST.max(least));
        self.due = now + wait.max(speed.cost * COSTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Speed =
        Speed { round_trip: Duration::from_millis(100), per_second: 125.0, cost: Duration::ZERO };

    fn seconds(seconds: f64) -> Time {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn probes_come_at_bounded_intervals() {
        let mut probes = Probes::begin(false, SLOW, Time::ZERO);
        let mut times = Vec::new();
        for second in 0..3_600 {
            if probes.is_due(seconds(f64::from(second))) {
                times.push(second);
                probes.refused(SLOW, seconds(f64::from(second)));
            }
        }
        assert_eq!(times[..7], [4, 8, 12, 16, 20, 24, 28]);
        assert!(times.iter().filter(|second| **second < 600).count() <= 17);
        let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert_eq!(longest, Some(120), "and they never end");
    }

    #[test]
    fn a_fast_service_is_probed_more_often() {
        let fast = Speed { round_trip: Duration::from_millis(10), per_second: 9_000.0, ..SLOW };
        let probes = Probes::begin(false, fast, Time::ZERO);
        assert!(!probes.is_due(seconds(0.09)) && probes.is_due(seconds(0.1)));
    }

    #[test]
    fn a_service_that_fell_is_probed_soon() {
        let mut probes = Probes::begin(true, SLOW, Time::ZERO);
        assert!(!probes.is_due(seconds(0.39)) && probes.is_due(seconds(0.4)));
        probes.refused(SLOW, seconds(2.0));
        assert!(!probes.is_due(seconds(2.79)) && probes.is_due(seconds(2.8)));
    }

    #[test]
    fn dear_refusals_are_asked_for_rarely() {
        let dear = Speed { cost: Duration::from_secs(10), ..SLOW };
        let probes = Probes::begin(false, dear, Time::ZERO);
        assert!(!probes.is_due(seconds(499.0)) && probes.is_due(seconds(500.0)));
    }

    #[test]
    fn steps_double_while_probes_are_accepted() {
        let mut probes = Probes::begin(false, SLOW, Time::ZERO);
        assert_eq!([20, 21, 23, 27].map(|at| probes.accepted(at, Time::ZERO)), [1, 2, 4, 8]);
        probes.refused(SLOW, Time::ZERO);
        assert_eq!([35, 36].map(|at| probes.accepted(at, Time::ZERO)), [1, 2]);
    }
}
