//! What is reachable by one who knows the service but not the future: these policies double from 1 per
//! round trip, stop exactly at the best level, and learn of a change one delay later. They are
//! no proofs: a start that is faster than doubling can beat them.

use super::{Level, Sample};
use crate::{BudgetKind, Outcome, Time, scenario::Scenario};
use std::{collections::VecDeque, time::Duration};

/// So many delays later the second one finds a rise.
const LATE: u32 = 5;

pub(super) struct Informed {
    /// The most that may be in flight.
    max: u32,
    /// Requests in the service and on their way there.
    taken: u32,
    level: u32,
    /// The best level now, and later: earliest first.
    best: u32,
    later: VecDeque<(Time, u32)>,
    windows: Vec<Window>,
    begins: Time,
}

/// So many requests are allowed within a time.
struct Window {
    limit: usize,
    length: Duration,
    used: VecDeque<Time>,
}

impl Window {
    fn allows(&mut self, now: Time) -> Result<(), Time> {
        while self.used.front().is_some_and(|at| *at + self.length <= now) {
            self.used.pop_front();
        }
        match self.used.front() {
            Some(first) if self.used.len() >= self.limit => Err(*first + self.length),
            _ => Ok(()),
        }
    }
}

impl Informed {
    pub fn new(scenario: &Scenario, late: bool) -> Self {
        let mut service = scenario.service.clone();
        let best = scenario.best(&service);
        let delay = service.delay.mul_f64(1.0 + service.jitter);
        let (mut before, mut later) = (best, VecDeque::new());
        for change in scenario.changes_in_time() {
            change.apply(&mut service);
            let best = scenario.best(&service);
            let delays = if late && best > before { LATE } else { 1 };
            later.push_back((change.at + service.latency + delay * delays, best));
            before = best;
        }
        let rate =
            scenario.service.rate.limit.map(|limit| (limit as usize, Duration::from_secs(1)));
        let budgets = scenario.service.budgets.iter();
        let budgets = budgets.filter(|budget| budget.kind == BudgetKind::Requests);
        let windows = rate.into_iter().chain(budgets.map(|b| (b.limit as usize, b.window)));
        let window = |(limit, length)| Window { limit, length, used: VecDeque::new() };
        let round_trip = delay + service.latency * 2;
        Self {
            max: scenario.pacer.max,
            taken: 0,
            level: best.min(1),
            best,
            later,
            windows: windows.map(window).collect(),
            begins: if late { round_trip } else { Time::ZERO },
        }
    }

    fn learn(&mut self, now: Time) {
        while self.later.front().is_some_and(|(at, _)| *at <= now) {
            self.best = self.later.pop_front().map_or(self.best, |(_, best)| best);
            self.level = self.level.max(1).min(self.best);
        }
    }
}

impl Level for Informed {
    fn level(&self) -> u32 {
        self.level
    }

    fn allows(&mut self, in_flight: u32, now: Time) -> Result<(), Option<Time>> {
        self.learn(now);
        if now < self.begins {
            return Err(Some(self.begins));
        }
        if self.taken >= self.level || in_flight >= self.max {
            return Err(self.later.front().map(|(at, _)| *at));
        }
        let waits = self.windows.iter_mut().filter_map(|window| window.allows(now).err());
        waits.max().map_or(Ok(()), |until| Err(Some(until)))
    }

    fn started(&mut self, _in_flight: u32, now: Time) {
        self.taken += 1;
        self.windows.iter_mut().for_each(|window| window.used.push_back(now));
    }

    fn ended(&mut self, sample: &Sample) {
        if sample.outcome == Outcome::Succeeded {
            self.level = (self.level + 1).min(self.best);
        }
    }

    fn foresees(&self) -> bool {
        true
    }

    fn freed(&mut self) {
        // After a restart, places become free that were taken before.
        self.taken = self.taken.saturating_sub(1);
    }
}
