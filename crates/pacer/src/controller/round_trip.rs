//! What a round trip takes, and how much that varies: tells when an answer is overdue.

use std::time::Duration;

/// The mean is over about so many answers.
const REMEMBERED: f64 = 64.0;
/// Nearly all answers come within the mean and so many mean deviations.
const USUAL: f64 = 3.0;
/// Fewer answers tell nothing about how long one may take.
const FEWEST: f64 = 8.0;
/// An answer is overdue beyond the mean and so many mean deviations: random delays have long tails …
const DEVIATIONS: f64 = 13.0;
/// … and never before so many times the mean …
const LEAST: f64 = 1.5;
/// … and this, in seconds: timers and threads of this process are late by as much.
const NOTICED: f64 = 0.005;

/// Mean and mean deviation of the last round trips, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    count: f64,
    mean: f64,
    deviation: f64,
}

impl RoundTrip {
    /// Adds the round trip of an answered request.
    pub fn add(&mut self, seconds: f64) {
        self.count = (self.count + 1.0).min(REMEMBERED);
        let delta = seconds - self.mean;
        self.mean += delta / self.count;
        if self.count > 1.0 {
            self.deviation += (delta.abs() - self.deviation) / self.count;
        }
    }

    /// Zero while nothing is known.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.mean)
    }

    /// After so long, nearly every request is answered.
    pub fn usual(&self) -> Duration {
        Duration::from_secs_f64(self.mean + USUAL * self.deviation)
    }

    /// Whether an answer took clearly longer than the mean.
    pub fn is_slow(&self, seconds: f64) -> bool {
        self.count > 1.0 && seconds > LEAST * self.mean
    }

    /// The mean deviation as a share of the mean.
    pub fn variation(&self) -> f64 {
        if self.mean > 0.0 { self.deviation / self.mean } else { 0.0 }
    }

    /// After so long, a request without an answer is taken as lost.
    pub fn overdue_after(&self) -> Option<Duration> {
        let usual = (self.mean + DEVIATIONS * self.deviation).max(LEAST * self.mean);
        (self.count >= FEWEST).then(|| Duration::from_secs_f64(usual + NOTICED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: &[f64]) -> RoundTrip {
        let mut round_trip = RoundTrip::default();
        seconds.iter().for_each(|seconds| round_trip.add(*seconds));
        round_trip
    }

    #[test]
    fn steady_answers_are_overdue_soon() {
        let overdue = after(&[0.1; 20]).overdue_after().unwrap();
        assert!((0.150..0.160).contains(&overdue.as_secs_f64()), "{overdue:?}");
    }

    #[test]
    fn answers_that_vary_are_waited_for() {
        let varying: Vec<f64> = (0..40).map(|n| 0.1 + 0.02 * f64::from(n % 4)).collect();
        let overdue = after(&varying).overdue_after().unwrap();
        assert!(overdue.as_secs_f64() > 0.3, "{overdue:?}");
    }

    #[test]
    fn a_few_answers_tell_nothing() {
        assert_eq!(after(&[0.1; 7]).overdue_after(), None);
    }
}
