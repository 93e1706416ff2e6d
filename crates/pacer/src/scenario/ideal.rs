//! How fast a scenario could be done by somebody who knows the service.

use super::{Scenario, file::ServiceSpec, service::slowdown};
use crate::BudgetKind;

impl Scenario {
    /// The least number of seconds, without ramping up, probing or rejections.
    pub(super) fn ideal(&self) -> f64 {
        let busiest = self.by_rate();
        let budgets = self.service.budgets.iter().map(|budget| {
            let window = budget.window.as_secs_f64();
            let delay = self.service.delay.as_secs_f64() * self.mean_cost();
            let requests = self.requests as f64;
            let most = match budget.kind {
                BudgetKind::Requests => budget.limit,
                BudgetKind::ExecutionSeconds => budget.limit / delay,
                BudgetKind::Concurrent => return 0.0,
            } * self.connections as f64;
            let full_windows = ((requests - 1.0) / most).floor();
            full_windows * window + self.seconds(&self.service, requests - full_windows * most)
        });
        let arrivals = self.interval.as_secs_f64() * (self.requests - 1) as f64;
        budgets.fold(busiest, f64::max).max(arrivals)
    }

    /// By what the service does at its best, from change to change.
    fn by_rate(&self) -> f64 {
        let (mut service, mut left, mut from) = (self.service.clone(), self.requests as f64, 0.0);
        for change in &self.changes {
            let until = change.at.as_secs_f64();
            let seconds = self.seconds(&service, left);
            if from + seconds <= until {
                return from + seconds;
            }
            left -= left * (until - from) / seconds;
            from = until;
            change.apply(&mut service);
        }
        from + self.seconds(&service, left)
    }

    fn mean_cost(&self) -> f64 {
        self.classes.iter().sum::<f64>() / self.classes.len() as f64
    }

    fn seconds(&self, service: &ServiceSpec, requests: f64) -> f64 {
        let concurrent = service.budgets.iter().filter(|b| b.kind == BudgetKind::Concurrent);
        let limits = [Some(self.pacer.max), service.concurrency.limit, service.hint.parallelism];
        let most = limits.into_iter().flatten().chain(concurrent.map(|b| b.limit as u32)).min();
        let most = most.unwrap_or(1).max(1);
        let connections = self.connections as f64;
        let delay = service.delay.as_secs_f64() * (1.0 + service.jitter) * self.mean_cost();
        let takes = |n: u32| delay * slowdown(&service.concurrency, n);
        // In whole rounds of requests, for as many in flight as serve best.
        let rounds = |n: u32| (requests / (f64::from(n) * connections)).ceil() * takes(n);
        let by_concurrency = (1..=most).map(rounds).fold(f64::INFINITY, f64::min);
        let per_second = service.rate.limit.map_or(f64::INFINITY, f64::from) * connections;
        by_concurrency.max(requests / per_second)
    }
}
