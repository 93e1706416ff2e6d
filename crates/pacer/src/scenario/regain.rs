//! How long a policy needs after the last change until it uses all of the service again.

use super::Scenario;
use crate::Time;
use std::{collections::VecDeque, time::Duration};

/// All of a service is in use if this share of it is.
const FULL: f64 = 0.9;
/// … on average over so many round trips.
const ROUND_TRIPS: u32 = 2;

/// Watches for the first time of full use after the last change.
pub(super) struct Regain {
    /// When the service changes for the last time.
    changed: Time,
    /// So many requests in flight are full use.
    full: f64,
    over: Duration,
    /// Stretches of time with the same number of useful requests in flight, within the last round trips.
    recent: VecDeque<Stretch>,
    /// Useful requests times seconds, over these.
    sum: f64,
    regained: Option<Time>,
}

struct Stretch {
    until: Time,
    lasts: Duration,
    useful: f64,
}

impl Regain {
    /// Nothing, if the service never changes.
    pub fn new(scenario: &Scenario) -> Option<Self> {
        let changed = scenario.changes.iter().map(|change| change.at).max()?;
        let mut service = scenario.service.clone();
        scenario.changes_in_time().for_each(|change| change.apply(&mut service));
        let (needed, round_trip) = (scenario.needed(&service), scenario.round_trip(&service));
        Some(Self {
            changed,
            full: FULL * f64::from(needed) * scenario.connections as f64,
            over: Duration::from_secs_f64(round_trip) * ROUND_TRIPS,
            recent: VecDeque::new(),
            sum: 0.0,
            regained: None,
        })
    }

    /// For so long, so many requests were in flight that the service does not refuse. If none waits, it
    /// is not the policy that holds any back.
    pub fn pass(&mut self, from: Time, to: Time, useful: usize, none_waits: bool) {
        if self.regained.is_some() || to <= self.changed {
            return;
        }
        let (lasts, useful) = (to - from.max(self.changed), useful as f64);
        self.sum += useful * lasts.as_secs_f64();
        self.recent.push_back(Stretch { until: to, lasts, useful });
        while let Some(first) = self.recent.front()
            && first.until + self.over <= to
        {
            self.sum -= first.useful * first.lasts.as_secs_f64();
            self.recent.pop_front();
        }
        if none_waits || self.sum >= self.full * self.over.as_secs_f64() {
            self.regained = Some(to);
        }
    }

    /// How long it took, in seconds; none if it did not happen.
    pub fn seconds(&self) -> Option<f64> {
        self.regained.map(|at| (at - self.changed).as_secs_f64())
    }
}
