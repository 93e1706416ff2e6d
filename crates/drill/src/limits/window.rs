//! A sliding window: what happened in the last so-and-so long.

use std::{collections::VecDeque, time::Duration};

/// Exact: it remembers each event until it leaves the window.
#[derive(Debug)]
pub struct Window {
    span: Duration,
    limit: u64,
    events: VecDeque<(Duration, u64)>,
    sum: u64,
}

impl Window {
    pub fn new(span: Duration, limit: u64) -> Self {
        Self { span, limit, events: VecDeque::new(), sum: 0 }
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts `amount` from `now` on.
    pub fn add(&mut self, now: Duration, amount: u64) {
        self.forget(now);
        self.events.push_back((now, amount));
        self.sum += amount;
    }

    pub fn remaining(&mut self, now: Duration) -> u64 {
        self.forget(now);
        self.limit.saturating_sub(self.sum)
    }

    pub fn is_full(&mut self, now: Duration) -> bool {
        self.remaining(now) == 0
    }

    /// How long until something leaves the window; zero if it is empty.
    pub fn reset_in(&mut self, now: Duration) -> Duration {
        self.forget(now);
        self.events.front().map_or(Duration::ZERO, |(at, _)| (*at + self.span).saturating_sub(now))
    }

    /// How long until there is room, if nothing more is counted.
    pub fn room_in(&mut self, now: Duration) -> Duration {
        self.forget(now);
        let mut sum = self.sum;
        for (at, amount) in &self.events {
            if sum < self.limit {
                break;
            }
            sum -= amount;
            if sum < self.limit {
                return (*at + self.span).saturating_sub(now);
            }
        }
        Duration::ZERO
    }

    pub fn clear(&mut self) {
        self.events.clear();
        self.sum = 0;
    }

    fn forget(&mut self, now: Duration) {
        while let Some((at, amount)) = self.events.front() {
            if *at + self.span > now {
                break;
            }
            self.sum -= amount;
            self.events.pop_front();
        }
    }
}
