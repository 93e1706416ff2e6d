//! What answers tell about the speed of a service, gathered per round trip.

use super::{curve::Curve, round_trip::RoundTrip};
use std::time::Duration;

/// Round trips, and what follows from them.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    times: RoundTrip,
    curve: Curve,
    /// Requests from this one on started in the current round trip.
    round: u64,
    /// Beyond so many in flight, throughput falls.
    useful: Option<u32>,
}

impl Answers {
    /// Adds the answer to a request that started as one of so many in flight. A round trip ends when one is
    /// answered that started after the last one ended: then the curve is looked at again, and with each
    /// answer that is slow.
    pub fn add(&mut self, id: u64, in_flight: u32, round_trip: Duration, next: u64) {
        let seconds = round_trip.as_secs_f64();
        let slow = self.times.is_slow(seconds);
        self.times.add(seconds);
        self.curve.add(in_flight, seconds);
        let round_ended = id >= self.round;
        if round_ended {
            self.round = next;
            self.curve.age();
        }
        if round_ended || slow {
            self.judge();
        }
    }

    /// Looks at the curve now.
    pub fn judge(&mut self) {
        self.useful = self.curve.best();
    }

    /// Beyond so many in flight, throughput falls.
    pub fn useful(&self) -> Option<u32> {
        self.useful
    }

    /// Whether round trips seem to grow already, were it by chance.
    pub fn seem_slower(&self) -> bool {
        self.curve.seems_slower()
    }

    pub fn round_trip(&self) -> Duration {
        self.times.mean()
    }

    /// The mean of the last round trips, and how much they vary.
    pub fn times(&self) -> RoundTrip {
        self.times
    }

    /// After so long, a request without an answer is taken as lost.
    pub fn overdue_after(&self) -> Option<Duration> {
        self.times.overdue_after()
    }
}
