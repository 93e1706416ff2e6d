//! How fast a scenario could be done by somebody who knows the service.

use super::{Scenario, file::ServiceSpec, service::slowdown};
use crate::BudgetKind;

impl Scenario {
    /// The least number of seconds, without ramping up, probing or rejections.
    pub(super) fn ideal(&self) -> f64 {
        let latency = self.latency();
        let served = self.beginnings().map(|(at, requests)| self.served(at + latency, requests));
        let busiest = served.fold(0.0, f64::max);
        let budgets = self.service.budgets.iter().map(|budget| {
            let window = budget.window.as_secs_f64();
            let delay = self.service.delay.as_secs_f64() * self.mean_cost();
            let delay = delay * (1.0 + self.service.jitter);
            let requests = self.requests as f64;
            let most = match budget.kind {
                BudgetKind::Requests => budget.limit,
                BudgetKind::ExecutionSeconds => budget.limit / delay,
                BudgetKind::Concurrent => return 0.0,
            } * self.connections as f64;
            let full_windows = ((requests - 1.0) / most).floor();
            let rest = self.seconds(&self.service, requests - full_windows * most);
            latency + full_windows * window + rest
        });
        budgets.fold(busiest, f64::max) + latency
    }

    /// Times from which on nothing earlier counts, with the requests that arrive from then on: the end is
    /// never before those could be done. Between two changes the end moves in one direction only, so
    /// that the first and the last arrival and the changes between them are enough.
    fn beginnings(&self) -> impl Iterator<Item = (f64, f64)> {
        let (all, interval) = (self.requests as f64, self.interval.as_secs_f64());
        let last = interval * (all - 1.0);
        let latency = self.latency();
        let changes = self.changes.iter().map(move |change| change.at.as_secs_f64() - latency);
        let between = changes.filter(move |at| *at > 0.0 && *at < last);
        let left = move |at: f64| (at, (all - (at / interval).ceil()).max(1.0));
        [(0.0, all), (last, 1.0)].into_iter().chain(between.map(left))
    }

    /// When so many requests are done that are there at a time, by what the service does at its best from
    /// change to change.
    fn served(&self, at: f64, requests: f64) -> f64 {
        let (mut service, mut left, mut from) = (self.service.clone(), requests, at);
        for change in self.changes_in_time() {
            let until = change.at.as_secs_f64();
            if until > from {
                let seconds = self.seconds(&service, left);
                if from + seconds <= until {
                    return from + seconds;
                }
                left -= left * (until - from) / seconds;
                from = until;
            }
            change.apply(&mut service);
        }
        from + self.seconds(&service, left)
    }

    fn mean_cost(&self) -> f64 {
        self.classes.iter().sum::<f64>() / self.classes.len() as f64
    }

    /// How long a service takes for so many requests, at its best.
    fn seconds(&self, service: &ServiceSpec, requests: f64) -> f64 {
        if service.accepts_nothing() {
            return f64::INFINITY;
        }
        let connections = self.connections as f64;
        // In whole rounds of requests, for as many in the service as serve best.
        let rounds =
            |n: u32| (requests / (f64::from(n) * connections)).ceil() * self.round(service, n);
        let most = self.most(service);
        let by_concurrency = (1..=most).map(rounds).fold(f64::INFINITY, f64::min);
        let per_second = service.rate.limit.map_or(f64::INFINITY, f64::from) * connections;
        by_concurrency.max(requests / per_second)
    }

    /// With how many requests at a time on one connection a service does most.
    pub(super) fn best(&self, service: &ServiceSpec) -> u32 {
        if service.accepts_nothing() {
            return 0;
        }
        let speed = |n: &u32| self.speed(service, *n);
        // The least of several that are as good.
        let levels = (1..=self.most(service)).rev();
        levels.max_by(|one, other| speed(one).total_cmp(&speed(other))).unwrap_or(1)
    }

    /// How many requests at a time on one connection are enough for all that a service can do.
    pub(super) fn needed(&self, service: &ServiceSpec) -> u32 {
        let best = self.best(service);
        let most = self.speed(service, best.max(1));
        let most = service.rate.limit.map_or(most, |limit| most.min(f64::from(limit)));
        (1..best).find(|n| self.speed(service, *n) >= most).unwrap_or(best)
    }

    /// How many requests in flight, on all connections, are enough for all that a service can do.
    pub(super) fn capacity(&self, service: &ServiceSpec) -> f64 {
        let needed = self.needed(service);
        let on_their_way = 2.0 * self.latency() * self.speed(service, needed.max(1));
        let busy = f64::from(u8::from(needed > 0));
        (f64::from(needed) + busy * on_their_way) * self.connections as f64
    }

    /// Requests per second on one connection.
    fn speed(&self, service: &ServiceSpec, n: u32) -> f64 {
        f64::from(n) / self.round(service, n)
    }

    /// What a request takes where nothing slows it down.
    pub(super) fn round_trip(&self, service: &ServiceSpec) -> f64 {
        self.takes(service, 1) + 2.0 * self.latency()
    }

    fn latency(&self) -> f64 {
        self.service.latency.as_secs_f64()
    }

    /// How many requests a connection can have in the service at the same time.
    fn most(&self, service: &ServiceSpec) -> u32 {
        let concurrent = service.budgets.iter().filter(|b| b.kind == BudgetKind::Concurrent);
        let limits = [Some(self.sent(service)), service.concurrency.limit];
        let most = limits.into_iter().flatten().chain(concurrent.map(|b| b.limit as u32)).min();
        most.unwrap_or(1).max(1)
    }

    /// How many requests a connection can have in flight, those on their way included.
    fn sent(&self, service: &ServiceSpec) -> u32 {
        service.hint.parallelism.map_or(self.pacer.max, |hint| hint.min(self.pacer.max))
    }

    /// How long the service takes for so many requests at a time. With latency, the sender may be what
    /// holds them back: those on their way count, too.
    fn round(&self, service: &ServiceSpec, n: u32) -> f64 {
        let takes = self.takes(service, n);
        let round_trip = takes + 2.0 * self.latency();
        takes.max(round_trip * f64::from(n) / f64::from(self.sent(service)))
    }

    /// How long a request takes in the service, on average.
    fn takes(&self, service: &ServiceSpec, n: u32) -> f64 {
        let factor = slowdown(&service.concurrency, n) + service.jitter;
        service.delay.as_secs_f64() * factor * self.mean_cost()
    }
}
