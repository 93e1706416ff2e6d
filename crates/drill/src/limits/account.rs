//! What one credential has in flight and has used.

use super::{Limit, window::Window};
use crate::spec::{BudgetKind, Spec};
use std::time::Duration;

/// One credential's account.
#[derive(Debug)]
pub struct Account {
    in_flight: usize,
    concurrency: Option<usize>,
    rate: Option<Window>,
    budgets: Vec<(BudgetKind, Window)>,
    hold: Option<Hold>,
}

/// The time in which the client knows that it must not send.
#[derive(Clone, Copy, Debug)]
struct Hold {
    since: Duration,
    until: Duration,
}

/// What a client may still do, as far as it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// The first budget of requests, or else the rate.
    pub quota: Option<Quota>,
    /// What is left of the first budget of requests.
    pub requests: Option<u64>,
    /// What is left of the first budget of execution time.
    pub execution: Option<Duration>,
}

/// A limit, what is left of it, and when more will be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quota {
    pub limit: u64,
    pub remaining: u64,
    pub reset_in: Duration,
}

impl Account {
    pub fn new(spec: &Spec) -> Self {
        let window = |budget: &crate::spec::Budget| {
            let limit = match budget.kind {
                BudgetKind::Requests => budget.limit as u64,
                BudgetKind::ExecutionSeconds => (budget.limit * 1e6) as u64,
            };
            (budget.kind, Window::new(budget.window, limit))
        };
        Self {
            in_flight: 0,
            concurrency: spec.concurrency.map(|it| it.limit),
            rate: spec.rate.map(|it| Window::new(Duration::from_secs(1), it.per_second)),
            budgets: spec.budgets.iter().map(window).collect(),
            hold: None,
        }
    }

    /// Takes a request in, or says which limit forbids it.
    pub fn arrive(&mut self, now: Duration) -> Result<(), Limit> {
        // Asked in any case: the rate counts those that another limit rejects, too.
        let rate_exceeded = self.rate.as_mut().is_some_and(|rate| {
            let full = rate.is_full(now);
            rate.add(now, 1);
            full
        });
        if self.concurrency.is_some_and(|limit| self.in_flight >= limit) {
            return Err(Limit::Concurrency);
        }
        if rate_exceeded {
            return Err(Limit::Rate);
        }
        if let Some(index) = self.budgets.iter_mut().position(|(_, window)| window.is_full(now)) {
            return Err(Limit::Budget(index));
        }
        self.in_flight += 1;
        self.use_up(BudgetKind::Requests, now, 1);
        Ok(())
    }

    /// Frees a request's place and counts what it took.
    pub fn leave(&mut self, now: Duration, execution: Duration) {
        self.in_flight -= 1;
        self.use_up(BudgetKind::ExecutionSeconds, now, execution.as_micros() as u64);
    }

    /// Remembers that the client was told not to send. The first of several rejections begins the
    /// time; the last one ends it.
    pub fn hold(&mut self, now: Duration, length: Duration) {
        let current = self.hold.filter(|hold| now < hold.until);
        let since = current.map_or(now, |hold| hold.since);
        let until = current.map_or(now + length, |hold| hold.until.max(now + length));
        self.hold = Some(Hold { since, until });
    }

    /// Whether a request that arrives at `at` was sent although the client knew better.
    pub fn is_held(&self, at: Duration, grace: Duration) -> bool {
        self.hold.is_some_and(|hold| at > hold.since + grace && at < hold.until)
    }

    /// How long until `limit` would let a request in; nobody knows for concurrency.
    pub fn room_in(&mut self, limit: Limit, now: Duration) -> Duration {
        match limit {
            Limit::Concurrency => Duration::ZERO,
            Limit::Rate => self.rate.as_mut().map_or(Duration::ZERO, |rate| rate.room_in(now)),
            Limit::Budget(index) => self.budgets[index].1.room_in(now),
        }
    }

    pub fn standing(&mut self, now: Duration) -> Standing {
        let requests =
            first(&mut self.budgets, BudgetKind::Requests).map(|window| quota(window, now));
        let rate = self.rate.as_mut().map(|window| quota(window, now));
        let execution = first(&mut self.budgets, BudgetKind::ExecutionSeconds);
        Standing {
            quota: requests.or(rate),
            requests: requests.map(|quota| quota.remaining),
            execution: execution.map(|window| Duration::from_micros(window.remaining(now))),
        }
    }

    /// Forgets what was used, but not what is in flight.
    pub fn clear(&mut self) {
        self.hold = None;
        let budgets = self.budgets.iter_mut().map(|(_, window)| window);
        budgets.chain(&mut self.rate).for_each(Window::clear);
    }

    fn use_up(&mut self, kind: BudgetKind, now: Duration, amount: u64) {
        for (_, window) in self.budgets.iter_mut().filter(|(of, _)| *of == kind) {
            window.add(now, amount);
        }
    }
}

fn first(budgets: &mut [(BudgetKind, Window)], kind: BudgetKind) -> Option<&mut Window> {
    budgets.iter_mut().find(|(of, _)| *of == kind).map(|(_, window)| window)
}

fn quota(window: &mut Window, now: Duration) -> Quota {
    let (limit, remaining) = (window.limit(), window.remaining(now));
    Quota { limit, remaining, reset_in: window.reset_in(now) }
}
