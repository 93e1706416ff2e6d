//! What is believed of a service's limits: the most that it accepted, and the ceilings that follow.
//!
//! A limit on what is in flight and a limit on the rate look alike until they contradict each other: a
//! request is refused with fewer in flight than were accepted, but with more in the last second
//! than ever. Then it is the rate.

use super::{ceiling::Ceiling, outstanding::Seen};
use crate::Time;
use std::time::Duration;

/// What was accepted counts for so long at least, and twice as long at most.
const REMEMBERED: Duration = Duration::from_secs(10);
/// What is on its way is in flight here and not at the service. A refusal with less than this share of
/// what was accepted is not explained by that.
const CERTAIN: f64 = 0.7;
/// Nor are so many in a row with as much as was accepted, but more within a second than ever.
const HINTS: u32 = 2;
/// While the level grows, and so long after, requests per second are more than ever in any case.
const STEADY: Duration = Duration::from_secs(1);

/// What is believed of a service.
#[derive(Clone, Debug, Default)]
pub(super) struct Belief {
    accepted: Accepted,
    /// Refusals in a row that point to the rate.
    hints: u32,
    /// The most in flight.
    pub flight: Option<Ceiling>,
    /// The most within a second.
    pub rate: Option<Ceiling>,
}

/// The most that was accepted lately.
#[derive(Clone, Copy, Debug, Default)]
struct Accepted {
    now: Seen,
    before: Seen,
    since: Time,
}

/// What a refusal tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refuted {
    /// More in flight than were ever accepted.
    MoreInFlight,
    /// Many were accepted with more in flight, but never so many within a second.
    TheRate,
    /// As much was accepted before, but that may be what is on its way.
    Nothing,
    /// Much more was accepted before.
    All,
}

impl Belief {
    /// A request was accepted.
    pub fn accepted(&mut self, seen: Seen, now: Time) {
        let accepted = &mut self.accepted;
        if now.saturating_sub(accepted.since) > REMEMBERED {
            accepted.before = std::mem::take(&mut accepted.now);
            accepted.since = now;
        }
        accepted.now = most(accepted.now, seen);
        for ceiling in self.flight.iter_mut().chain(&mut self.rate) {
            ceiling.accepted();
        }
    }

    /// The most that was accepted lately.
    pub fn most(&self) -> Seen {
        most(self.accepted.now, self.accepted.before)
    }

    /// What was accepted long ago proves nothing anymore.
    pub fn forget_accepted(&mut self) {
        self.accepted = Accepted::default();
    }

    /// What a refusal with so much in flight, and within a second, tells.
    pub fn judge(&mut self, seen: Seen, steady: Duration) -> Refuted {
        let most = self.most();
        if seen.in_flight > most.in_flight {
            return Refuted::MoreInFlight;
        }
        let alone = seen.in_flight == 1;
        let certain = f64::from(seen.in_flight) <= CERTAIN * f64::from(most.in_flight);
        if alone {
            self.hints = if self.is_more(seen.per_second) { self.hints + 1 } else { 0 };
            let sure = self.hints >= HINTS || (self.hints > 0 && most.per_second > HINTS);
            return if sure { Refuted::TheRate } else { Refuted::All };
        }
        if certain {
            let rate = self.is_more(seen.per_second);
            return if rate { Refuted::TheRate } else { Refuted::All };
        }
        self.hints = if self.may_be_rate(seen.per_second, steady) { self.hints + 1 } else { 0 };
        if self.hints >= HINTS { Refuted::TheRate } else { Refuted::Nothing }
    }

    /// Whether a refusal with so many within a second can be one of the rate: never were so many accepted.
    /// While the level grows, that is so in any case.
    fn may_be_rate(&self, per_second: u32, steady: Duration) -> bool {
        steady >= STEADY && self.is_more(per_second)
    }

    /// Whether never were so many accepted within a second.
    pub fn is_more(&self, per_second: u32) -> bool {
        (1..per_second).contains(&self.most().per_second)
    }
}

fn most(one: Seen, other: Seen) -> Seen {
    Seen {
        in_flight: one.in_flight.max(other.in_flight),
        per_second: one.per_second.max(other.per_second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(in_flight: u32, per_second: u32) -> Seen {
        Seen { in_flight, per_second }
    }

    fn belief(accepted: &[Seen]) -> Belief {
        let mut belief = Belief::default();
        accepted.iter().for_each(|seen| belief.accepted(*seen, Time::ZERO));
        belief
    }

    #[test]
    fn more_in_flight_than_ever_is_the_first_guess() {
        let mut belief = belief(&[seen(4, 90), seen(5, 100)]);
        assert_eq!(belief.judge(seen(6, 101), Time::ZERO), Refuted::MoreInFlight);
    }

    #[test]
    fn fewer_in_flight_but_more_per_second_is_the_rate() {
        let mut belief = belief(&[seen(31, 84), seen(16, 100)]);
        assert_eq!(belief.judge(seen(17, 101), Time::ZERO), Refuted::TheRate);
        assert_eq!(belief.judge(seen(17, 100), Time::ZERO), Refuted::All, "as many were accepted");
        assert_eq!(
            belief.judge(seen(30, 101), Time::ZERO),
            Refuted::Nothing,
            "that may be what is on its way"
        );
    }

    #[test]
    fn nothing_accepted_is_no_rate() {
        let mut belief = belief(&[seen(31, 84)]);
        belief.forget_accepted();
        assert!(!belief.is_more(1_000));
        assert_eq!(belief.judge(seen(1, 1_000), Time::ZERO), Refuted::MoreInFlight);
    }

    #[test]
    fn what_was_accepted_long_ago_is_forgotten() {
        let mut belief = belief(&[seen(31, 84)]);
        belief.accepted(seen(5, 5), Duration::from_secs(11));
        assert_eq!(belief.most(), seen(31, 84));
        belief.accepted(seen(6, 6), Duration::from_secs(22));
        assert_eq!(belief.most(), seen(6, 6));
    }
}
