//! Accounts over a sliding window: they predict that a budget is used up before the service says so.

use crate::{Budget, BudgetKind, Time};
use std::{collections::VecDeque, time::Duration};

/// A window is kept in so many parts. What was used comes back when its part's end has left the window,
/// late by one part at most: a margin for a service that counts a little later than we do.
const PARTS: u32 = 256;

/// What was used of one budget.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub kind: BudgetKind,
    pub limit: f64,
    pub window: Duration,
    /// What was used in each part of the window, with the part's end; oldest first.
    parts: VecDeque<(Time, f64)>,
    total: f64,
}

impl Account {
    pub fn new(budget: &Budget) -> Self {
        Self {
            kind: budget.kind,
            limit: budget.limit,
            window: budget.window,
            parts: VecDeque::new(),
            total: 0.0,
        }
    }

    /// Uses some of the budget.
    pub fn charge(&mut self, amount: f64, now: Time) {
        self.forget(now);
        self.total += amount;
        match self.parts.back_mut() {
            Some((end, used)) if *end > now => *used += amount,
            _ => self.parts.push_back((now + self.window / PARTS, amount)),
        }
    }

    /// Whether so much more may be used now; if not, when that much will be free.
    pub fn allows(&mut self, amount: f64, now: Time) -> Result<(), Time> {
        self.forget(now);
        let mut excess = self.total + amount - self.limit;
        // A single request that is dearer than the whole budget must not wait for ever.
        if excess <= 1e-9 || self.parts.is_empty() {
            return Ok(());
        }
        for (end, used) in &self.parts {
            excess -= used;
            if excess <= 1e-9 {
                return Err(*end + self.window);
            }
        }
        // Empty, as far as is known: what is in flight will be charged later.
        let last = self.parts.back().map_or(now, |(end, _)| *end);
        Err(last + self.window)
    }

    /// What was used within the window.
    pub fn used(&mut self, now: Time) -> f64 {
        self.forget(now);
        self.total
    }

    fn forget(&mut self, now: Time) {
        while let Some((end, used)) = self.parts.front().copied()
            && end + self.window <= now
        {
            self.total -= used;
            self.parts.pop_front();
        }
        if self.parts.is_empty() {
            self.total = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Time {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_used_comes_back_when_the_window_has_passed() {
        let budget =
            Budget { kind: BudgetKind::Requests, limit: 100.0, window: Duration::from_secs(300) };
        let mut account = Account::new(&budget);
        for second in 0..100 {
            assert_eq!(account.allows(1.0, seconds(second)), Ok(()));
            account.charge(1.0, seconds(second));
        }
        let free = account.allows(1.0, seconds(100)).unwrap_err();
        assert!(free > seconds(300) && free < seconds(303), "{free:?}");
        assert!(account.allows(5.0, seconds(100)).unwrap_err() > free);
        assert_eq!(account.allows(1.0, free), Ok(()));
    }

    #[test]
    fn one_request_always_goes() {
        let budget = Budget { kind: BudgetKind::ExecutionSeconds, limit: 1.0, window: seconds(10) };
        assert_eq!(Account::new(&budget).allows(50.0, seconds(1)), Ok(()));
    }

    #[test]
    fn memory_is_bounded() {
        let budget = Budget { kind: BudgetKind::Requests, limit: 1e9, window: seconds(300) };
        let mut account = Account::new(&budget);
        (0..1_000_000).for_each(|ms| account.charge(1.0, Duration::from_millis(ms)));
        assert!(account.parts.len() <= 2 * PARTS as usize);
    }
}
