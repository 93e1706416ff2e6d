//! When not even one request is accepted, the level has no part in it: one request asks from time to
//! time, and the others wait for its answer.

use crate::Time;
use std::time::Duration;

/// The next one asks after this share of the time for which nothing was accepted, …
const SHARE: u32 = 6;
/// … and at the latest after this: one request in so long a time costs little, and the end of a long outage is
/// noticed soon.
const LONGEST: Duration = Duration::from_secs(30);
/// The least time between two, for a service whose round trip is not known.
const LEAST: Duration = Duration::from_millis(10);

/// Whether requests may start freely.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Ask {
    /// They may.
    #[default]
    Over,
    /// One may, from this time on.
    Due { since: Time, from: Time },
    /// One is under way: the others wait for its answer.
    Asked { since: Time },
}

impl Ask {
    /// Whether a request may start, and if not, from when one may.
    pub fn allows(&self, now: Time) -> Result<(), Option<Time>> {
        match self {
            Ask::Over => Ok(()),
            Ask::Due { from, .. } if now >= *from => Ok(()),
            Ask::Due { from, .. } => Err(Some(*from)),
            Ask::Asked { .. } => Err(None),
        }
    }

    /// Let one ask, as soon as the service allows.
    pub fn begin(&mut self, from: Time) {
        if *self == Ask::Over {
            *self = Ask::Due { since: from, from };
        }
    }

    /// A request starts. Returns whether it is the one that asks.
    pub fn start(&mut self) -> bool {
        let Ask::Due { since, .. } = *self else { return false };
        *self = Ask::Asked { since };
        true
    }

    /// It was refused, or lost. Of a service that says how long to wait, the next may ask right then.
    pub fn again(&mut self, round_trip: Duration, is_told: bool, now: Time) {
        let (Ask::Due { since, .. } | Ask::Asked { since }) = *self else { return };
        let pause = (now.saturating_sub(since) / SHARE).max(round_trip).clamp(LEAST, LONGEST);
        *self = Ask::Due { since, from: if is_told { now } else { now + pause } };
    }

    /// It was given up without an answer.
    pub fn abandoned(&mut self, now: Time) {
        if let Ask::Asked { since } = *self {
            *self = Ask::Due { since, from: now };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(100);

    #[test]
    fn one_asks_and_the_others_wait() {
        let second = Duration::from_secs(1);
        let mut ask = Ask::default();
        assert_eq!(ask.allows(Time::ZERO), Ok(()));
        ask.begin(second);
        assert_eq!(ask.allows(Time::ZERO), Err(Some(second)));
        assert_eq!(ask.allows(second), Ok(()));
        assert!(ask.start());
        assert_eq!(ask.allows(second), Err(None));
        assert!(!ask.start());
        ask.again(ROUND_TRIP, false, second);
        assert_eq!(ask.allows(second), Err(Some(second + ROUND_TRIP)));
        ask.again(ROUND_TRIP, true, second);
        assert_eq!(ask.allows(second), Ok(()));
    }

    #[test]
    fn the_end_of_an_outage_is_noticed_after_a_share_of_it() {
        let (mut ask, mut now, mut times) = (Ask::default(), Time::ZERO, Vec::new());
        ask.begin(now);
        while now < Duration::from_secs(3_600) {
            ask.start();
            ask.again(ROUND_TRIP, false, now);
            now = ask.allows(now).unwrap_err().unwrap();
            times.push(now.as_secs_f64());
        }
        assert!(times.iter().filter(|at| **at < 15.0).count() < 30, "few requests are spent on it");
        for pair in times.windows(2) {
            assert!(pair[1] - pair[0] <= (pair[0] / 6.0).clamp(0.1, 30.0) + 0.001, "{pair:?}");
        }
    }
}
