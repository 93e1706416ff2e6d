//! Level and requests in flight over time, in a bounded number of points.

use super::Scenario;
use crate::Time;
use std::time::Duration;

/// More points than this are merged in pairs.
const MOST: usize = 600;
/// The first points last so long.
const FINEST: Duration = Duration::from_millis(1);

/// What happened over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Each point is a mean over so long.
    pub resolution: Duration,
    /// From the start on.
    pub points: Vec<Point>,
    /// From these seconds on, so many requests in flight are enough for all that the service can do.
    pub capacity: Vec<(f64, f64)>,
}

/// Means over a short time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// How much was allowed in flight.
    pub limit: f64,
    /// How much was in flight.
    pub in_flight: f64,
    /// For how many seconds that is known.
    seconds: f64,
}

impl Point {
    fn add(&mut self, limit: f64, in_flight: f64, seconds: f64) {
        self.merge(Point { limit, in_flight, seconds });
    }

    fn merge(&mut self, other: Point) {
        let seconds = self.seconds + other.seconds;
        if seconds > 0.0 {
            let share = other.seconds / seconds;
            self.limit += share * (other.limit - self.limit);
            self.in_flight += share * (other.in_flight - self.in_flight);
            self.seconds = seconds;
        }
    }
}

impl Trace {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut service = scenario.service.clone();
        let mut capacity = vec![(0.0, scenario.capacity(&service))];
        for change in scenario.changes_in_time() {
            change.apply(&mut service);
            capacity.push((change.at.as_secs_f64(), scenario.capacity(&service)));
        }
        Self { resolution: FINEST, points: Vec::new(), capacity }
    }

    /// So much was allowed and in flight for some time.
    pub(super) fn pass(&mut self, mut from: Time, to: Time, limit: f64, in_flight: f64) {
        while self.index(to) >= MOST {
            self.coarsen();
        }
        while from < to {
            let index = self.index(from);
            let until = to.min(self.resolution * (index as u32 + 1));
            if self.points.len() <= index {
                self.points.resize(index + 1, Point::default());
            }
            self.points[index].add(limit, in_flight, (until - from).as_secs_f64());
            from = until;
        }
    }

    fn index(&self, at: Time) -> usize {
        (at.as_nanos() / self.resolution.as_nanos()) as usize
    }

    fn coarsen(&mut self) {
        self.resolution *= 2;
        let pair = |pair: &[Point]| {
            let mut merged = pair[0];
            pair[1..].iter().for_each(|other| merged.merge(*other));
            merged
        };
        self.points = self.points.chunks(2).map(pair).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_trace_has_few_points_with_the_same_means() {
        let mut trace = Trace { resolution: FINEST, points: Vec::new(), capacity: Vec::new() };
        let second = Duration::from_secs(1);
        for n in 0..10_000 {
            trace.pass(second * n, second * (n + 1), 10.0, f64::from(n % 2));
        }
        assert!(trace.points.len() <= MOST && trace.points.len() > MOST / 4);
        for point in &trace.points {
            assert!((point.limit - 10.0).abs() < 1e-9);
            assert!((0.3..0.7).contains(&point.in_flight), "{point:?}");
        }
    }
}
