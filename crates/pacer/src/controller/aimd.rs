//! Additive increase, multiplicative decrease: complete by itself.

use crate::{Options, Time, decision::Reason};
use std::sync::Arc;

/// The level of one (connection, operation class), as AIMD has it.
#[derive(Clone, Debug)]
pub(crate) struct Aimd {
    options: Arc<Options>,
    pub level: u32,
    pub last_known_good: u32,
    pub last_known_good_at: Time,
    pub successes_since_throttle: u32,
    pub total_throttles: u64,
    pub throttled_at: Option<Time>,
    pub increased_at: Time,
    pub active_at: Time,
}

impl Aimd {
    pub fn new(options: Arc<Options>, now: Time) -> Self {
        let level = options.first_level();
        Self {
            options,
            level,
            last_known_good: level,
            last_known_good_at: now,
            successes_since_throttle: 0,
            total_throttles: 0,
            throttled_at: None,
            increased_at: now,
            active_at: now,
        }
    }

    /// Whether the last activity is so long ago that all must be learned again. Asked before the
    /// activity is stamped: afterwards nothing would ever look idle.
    pub fn is_idle(&self, now: Time) -> bool {
        now.saturating_sub(self.active_at) > self.options.idle_reset_period
    }

    /// Stamps activity.
    pub fn active(&mut self, now: Time) {
        self.active_at = now;
    }

    /// Forgets all but the total of throttles.
    pub fn reset(&mut self, now: Time) {
        let total_throttles = self.total_throttles;
        let throttled_at = self.throttled_at;
        *self = Self { total_throttles, throttled_at, ..Self::new(self.options.clone(), now) };
    }

    /// Whether the last known good level is too old to count.
    pub fn is_stale(&self, now: Time) -> bool {
        now.saturating_sub(self.last_known_good_at) > self.options.last_known_good_ttl
    }

    /// Counts a success.
    pub fn succeeded(&mut self, now: Time) {
        self.active(now);
        self.successes_since_throttle = self.successes_since_throttle.saturating_add(1);
        if self.is_stale(now) {
            self.last_known_good = self.level;
        }
    }

    /// Whether both conditions of an increase are met.
    pub fn may_increase(&self, now: Time) -> bool {
        self.successes_since_throttle >= self.options.stabilization_batches
            && now.saturating_sub(self.increased_at) >= self.options.min_increase_interval
    }

    /// The level after an increase, and what kind of increase it is.
    pub fn increased(&self) -> (u32, Reason) {
        let rate = self.options.increase_rate;
        let (increase, reason) = if self.level < self.last_known_good {
            let faster = f64::from(rate) * self.options.recovery_multiplier;
            (faster.round() as u32, Reason::Recovery)
        } else {
            (rate, Reason::Probe)
        };
        (self.level.saturating_add(increase).min(self.options.max), reason)
    }

    /// Moves up, and begins to count and to wait again.
    pub fn raise(&mut self, level: u32, now: Time) {
        self.level = self.bounded(level);
        self.successes_since_throttle = 0;
        self.increased_at = now;
    }

    /// Counts a throttle, without answering it.
    pub fn count_throttle(&mut self, now: Time) {
        self.active(now);
        self.total_throttles += 1;
        self.throttled_at = Some(now);
    }

    /// Answers a throttle: remembers the level just below, and falls to a share of it.
    pub fn decrease(&mut self, now: Time) {
        let good = self.level.saturating_sub(self.options.increase_rate);
        self.last_known_good = self.bounded(good);
        self.last_known_good_at = now;
        let share = (f64::from(self.level) * self.options.decrease_factor).floor();
        self.fall(share as u32);
    }

    /// Moves down to a level.
    pub fn fall(&mut self, level: u32) {
        self.level = self.bounded(level);
        self.successes_since_throttle = 0;
    }

    fn bounded(&self, level: u32) -> u32 {
        level.clamp(self.options.min_parallelism, self.options.max)
    }
}
