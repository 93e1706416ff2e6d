//! Requests to a service with a ceiling start evenly over the round trip.
//!
//! A burst of n needs n places at once; an even stream needs only as many as the service works
//! on, because part of each round trip is spent on the way. Answers that come evenly keep the requests
//! that follow even, so only bursts have to be held back.

use super::round_trip::RoundTrip;
use crate::Time;
use std::time::Duration;

/// The whole level may start within this share of a round trip.
const SHARE: f64 = 0.85;
/// Answers that vary keep requests apart by themselves: so many times the variation is taken off.
const VARIATION: f64 = 6.0;
/// Who is late, because timers are, may catch up with this share of a round trip …
const LATE: u32 = 8;
/// … and at most with this.
const LATEST: Duration = Duration::from_millis(5);

/// When the next request may start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    begun: bool,
    next: Time,
}

impl Spread {
    /// One request above the ceiling was refused: that may be the fault of a burst.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// Whether a request may start; if not, when.
    pub fn allows(&self, now: Time) -> Result<(), Time> {
        if !self.begun || self.next <= now { Ok(()) } else { Err(self.next) }
    }

    /// A request starts as one of so many that may be in flight.
    pub fn start(&mut self, level: u32, round_trip: RoundTrip, now: Time) {
        let share = SHARE * (1.0 - VARIATION * round_trip.variation()).max(0.0);
        let round_trip = round_trip.mean();
        let gap = round_trip.mul_f64(share / f64::from(level.max(1)));
        let late = (round_trip / LATE).min(LATEST);
        self.next = self.next.max(now.saturating_sub(late)) + gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_takes_most_of_a_round_trip() {
        let mut steady = RoundTrip::default();
        (0..10).for_each(|_| steady.add(0.1));
        let (mut spread, mut now) = (Spread::default(), Duration::from_secs(1));
        let begin = now;
        spread.begin();
        for _ in 0..20 {
            now = spread.allows(now).err().unwrap_or(now);
            spread.start(20, steady, now);
        }
        let taken = now - begin;
        assert!((75..=85).contains(&taken.as_millis()), "{taken:?}");
    }
}
