//! A service that does as its description says.

use super::file::{Action, LimitSpec, ServiceBudget, ServiceSpec};
use crate::{BudgetKind, Time};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{collections::VecDeque, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

/// What a service will do with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reaction {
    /// It occupies the service for so long.
    pub occupies: Duration,
    pub answer: Reply,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reply {
    Accepted,
    Rejected { retry_after: Option<Duration> },
    Never,
}

/// The state of a simulated service, for one credential.
pub(super) struct Service {
    pub spec: ServiceSpec,
    random: ChaCha8Rng,
    in_flight: u32,
    recent: VecDeque<Time>,
    budgets: Vec<Usage>,
}

/// What was used of a budget.
struct Usage {
    budget: ServiceBudget,
    used: VecDeque<(Time, f64)>,
    total: f64,
}

impl Service {
    pub fn new(spec: ServiceSpec, seed: u64) -> Self {
        let usage = |budget: &ServiceBudget| Usage {
            budget: budget.clone(),
            used: VecDeque::new(),
            total: 0.0,
        };
        let budgets = spec.budgets.iter().map(usage).collect();
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self { spec, random, in_flight: 0, recent: VecDeque::new(), budgets }
    }

    /// A request arrives that costs so many times the usual.
    pub fn arrive(&mut self, cost: f64, now: Time) -> Reaction {
        self.in_flight += 1;
        while self.recent.front().is_some_and(|at| *at + SECOND <= now) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        let (in_flight, recent) = (self.in_flight, self.recent.len() as u32);
        let limits = [(&self.spec.concurrency, in_flight), (&self.spec.rate, recent)];
        for (limit, busy) in limits {
            if limit.limit.is_some_and(|most| busy > most) {
                return self.refuse(limit.action, limit.retry_after);
            }
        }
        let mut exhausted = self.budgets.iter_mut().filter_map(|u| u.exhausted(in_flight, now));
        if let Some(retry_after) = exhausted.next() {
            return self.refuse(Action::Defer, retry_after);
        }
        for usage in self.budgets.iter_mut().filter(|u| u.budget.kind == BudgetKind::Requests) {
            usage.charge(1.0, now);
        }
        let jitter = self.spec.jitter * self.exponential();
        let slower = |limit: &LimitSpec, busy| slowdown(limit, busy) - 1.0;
        let factor = 1.0
            + jitter
            + slower(&self.spec.concurrency, in_flight)
            + slower(&self.spec.rate, recent);
        let occupies = self.spec.delay.mul_f64((cost * factor).min(1e6));
        Reaction { occupies, answer: Reply::Accepted }
    }

    fn refuse(&self, action: Action, retry_after: Option<f64>) -> Reaction {
        let retry_after = retry_after.map(Duration::from_secs_f64);
        let answer = match action {
            Action::Defer => Reply::Rejected { retry_after },
            Action::Drop => Reply::Never,
        };
        Reaction { occupies: self.spec.delay, answer }
    }

    /// A request leaves the service.
    pub fn leave(&mut self, reaction: Reaction, now: Time) {
        self.in_flight -= 1;
        if reaction.answer == Reply::Accepted {
            let execution =
                self.budgets.iter_mut().filter(|u| u.budget.kind == BudgetKind::ExecutionSeconds);
            execution.for_each(|usage| usage.charge(reaction.occupies.as_secs_f64(), now));
        }
    }

    fn exponential(&mut self) -> f64 {
        if self.spec.jitter == 0.0 {
            return 0.0;
        }
        let uniform: f64 = self.random.random();
        -(1.0 - uniform).ln()
    }
}

/// By how much a service is slower with so much to do.
pub(super) fn slowdown(limit: &LimitSpec, busy: u32) -> f64 {
    let scale = limit.scale * f64::from(busy.saturating_sub(1));
    let beyond = busy.saturating_sub(limit.knee_start);
    1.0 + scale + limit.knee_exp.powi(beyond as i32) - 1.0
}

impl Usage {
    /// If nothing is left: what goes with the rejection.
    fn exhausted(&mut self, in_flight: u32, now: Time) -> Option<Option<f64>> {
        while let Some((at, amount)) = self.used.front().copied()
            && at + self.budget.window <= now
        {
            self.total -= amount;
            self.used.pop_front();
        }
        let exhausted = match self.budget.kind {
            BudgetKind::Concurrent => f64::from(in_flight) > self.budget.limit,
            BudgetKind::Requests => self.total + 1.0 > self.budget.limit,
            BudgetKind::ExecutionSeconds => self.total >= self.budget.limit,
        };
        exhausted.then_some(self.budget.retry_after)
    }

    fn charge(&mut self, amount: f64, now: Time) {
        self.total += amount;
        self.used.push_back((now, amount));
    }
}
