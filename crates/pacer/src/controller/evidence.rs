//! What rejections tell about the limit behind them.
//!
//! A service that limits how much is in flight accepts up to a number and rejects beyond it; one that
//! limits the rate does the same with requests per second. So the most that was accepted and the
//! least that was rejected tell one from the other, and where the limit is.

use crate::{Time, decision::Cause};
use std::{collections::VecDeque, time::Duration};

/// The window of a rate.
const SECOND: Duration = Duration::from_secs(1);
/// Within the first seconds, whatever grows with time looks like the cause.
const LONG_ENOUGH: Duration = Duration::from_secs(2);
/// And what was answered, but is still under way to us, is in flight for us and not for the service:
/// one, and one of so many.
const UNDER_WAY: u32 = 8;
/// Beyond this many requests per second no rate is learned: bounds the memory.
const MAX_PER_SECOND: usize = 4_096;

/// What was seen since the last rejection was dealt with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    sent: VecDeque<Time>,
    /// When the first of what follows was accepted.
    since: Option<Time>,
    /// The most that was accepted.
    accepted: Seen,
    /// The least that was rejected …
    rejected: Option<Seen>,
    /// … and whether that was so little that it was no matter of what is in flight: not even a trial,
    /// or less than a ceiling that was found before.
    little: bool,
    /// When that was.
    at: Time,
}

/// How busy the service was when a request started, as far as this pacer knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// In flight, itself included.
    pub in_flight: u32,
    /// Sent within the last second, itself included.
    pub per_second: u32,
}

impl Evidence {
    /// A request starts as one of so many in flight.
    pub fn start(&mut self, in_flight: u32, now: Time) -> Seen {
        while self.sent.front().is_some_and(|sent| *sent + SECOND <= now) {
            self.sent.pop_front();
        }
        if self.sent.len() == MAX_PER_SECOND {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
        Seen { in_flight, per_second: self.sent.len() as u32 }
    }

    /// It was accepted.
    pub fn accepted(&mut self, seen: Seen, now: Time) {
        self.since.get_or_insert(now);
        self.accepted.in_flight = self.accepted.in_flight.max(seen.in_flight);
        self.accepted.per_second = self.accepted.per_second.max(seen.per_second);
    }

    /// It was rejected.
    pub fn rejected(&mut self, seen: Seen, little: bool, now: Time) {
        let least = self.rejected.get_or_insert(seen);
        least.in_flight = least.in_flight.min(seen.in_flight);
        least.per_second = least.per_second.min(seen.per_second);
        self.little |= little;
        self.at = now;
    }

    /// The simplest limit that explains what was seen. A limit on what is in flight is believed
    /// first: if it is wrong, the trial shows it.
    pub fn cause(&self) -> Cause {
        let Some(rejected) = self.rejected else { return Cause::Unknown };
        let accepted = self.accepted;
        let by_flight = (1..rejected.in_flight).contains(&accepted.in_flight);
        let in_flight = Cause::InFlight { most: rejected.in_flight.saturating_sub(1) };
        if by_flight && !self.little {
            return in_flight;
        }
        let seen_for = self.since.map_or(Duration::ZERO, |since| self.at.saturating_sub(since));
        let long_enough = seen_for >= LONG_ENOUGH;
        let nearly = rejected.in_flight + 1 + rejected.in_flight / UNDER_WAY;
        if !self.little && !long_enough && (1..=nearly).contains(&accepted.in_flight) {
            return Cause::InFlight { most: rejected.in_flight };
        }
        let known = self.little || long_enough;
        let countable = (rejected.per_second as usize) < MAX_PER_SECOND;
        if known && countable && (1..rejected.per_second).contains(&accepted.per_second) {
            return Cause::PerSecond { most: rejected.per_second - 1 };
        }
        if by_flight { in_flight } else { Cause::Unknown }
    }

    /// The rejection is dealt with: what counts from here on is new.
    pub fn close(&mut self) {
        self.since = None;
        self.accepted = Seen::default();
        self.rejected = None;
        self.little = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(in_flight: u32, per_second: u32) -> Seen {
        Seen { in_flight, per_second }
    }

    #[test]
    fn requests_of_the_last_second_are_counted() {
        let mut evidence = Evidence::default();
        for tenth in 0..20 {
            evidence.start(1, Duration::from_millis(100 * tenth));
        }
        assert_eq!(evidence.start(3, Duration::from_millis(2_000)), seen(3, 10));
    }

    fn judged(accepted: &[Seen], rejected: &[(Seen, bool)], seconds: u64) -> Cause {
        let mut evidence = Evidence::default();
        accepted.iter().for_each(|seen| evidence.accepted(*seen, Time::ZERO));
        let now = Duration::from_secs(seconds);
        rejected.iter().for_each(|(seen, trial)| evidence.rejected(*seen, *trial, now));
        evidence.cause()
    }

    #[test]
    fn a_limit_in_flight_is_the_first_guess() {
        let rejected = [6, 7, 8].map(|n| (seen(n, 10 + n), false));
        let cause = judged(&[1, 2, 3, 4, 5].map(|n| seen(n, 10 + n)), &rejected, 0);
        assert_eq!(cause, Cause::InFlight { most: 5 });
    }

    #[test]
    fn a_trial_that_is_rejected_points_to_the_rate() {
        let rejected = [(seen(38, 101), false), (seen(1, 128), true)];
        assert_eq!(judged(&[seen(37, 100)], &rejected, 0), Cause::PerSecond { most: 100 });
    }

    #[test]
    fn what_grows_in_the_first_seconds_proves_no_rate() {
        let rejected = [(seen(30, 101), false)];
        assert_eq!(judged(&[seen(37, 100)], &rejected, 1), Cause::Unknown);
        assert_eq!(judged(&[seen(37, 100)], &rejected, 2), Cause::PerSecond { most: 100 });
    }

    #[test]
    fn what_is_under_way_blurs_the_limit_of_the_first_seconds() {
        let rejected = [(seen(4, 9), false)];
        let cause = judged(&[seen(4, 8)], &rejected, 0);
        assert_eq!(cause, Cause::InFlight { most: 4 });
        assert_eq!(judged(&[seen(9, 8)], &rejected, 0), Cause::Unknown);
    }

    #[test]
    fn what_was_accepted_before_refutes_both() {
        let rejected = [(seen(20, 200), false)];
        assert_eq!(judged(&[seen(20, 200)], &rejected, 9), Cause::Unknown);
    }
}
