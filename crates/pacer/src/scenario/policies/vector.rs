//! Adaptive request concurrency as Vector describes it: once per round trip, one more if the mean of the
//! last round trips is not above the average of earlier ones, × 0.9 if it is far above or the
//! service rejected.

use super::{Level, Sample, first_level};
use crate::{Options, Outcome, Time};
use std::time::Duration;

/// What is left after back pressure.
const DECREASE_RATIO: f64 = 0.9;
/// The weight of the newest mean in the average.
const EWMA_ALPHA: f64 = 0.4;
/// So many deviations above the average are back pressure.
const RTT_DEVIATION_SCALE: f64 = 2.5;
/// Means of equal round trips differ in their last digits; Vector rounds to microseconds in its tests.
const UNIT: f64 = 1e6;

pub(super) struct Vector {
    level: u32,
    min: u32,
    max: u32,
    /// Average and variance of earlier means.
    past: Option<(f64, f64)>,
    /// Sum and number of round trips since the last update.
    current: (f64, u32),
    next_update: Time,
    had_back_pressure: bool,
    reached_limit: bool,
}

impl Vector {
    pub fn new(options: &Options) -> Self {
        Self {
            level: first_level(options),
            min: options.min_parallelism,
            max: options.max,
            past: None,
            current: (0.0, 0),
            next_update: Time::ZERO,
            had_back_pressure: false,
            reached_limit: false,
        }
    }

    fn current(&self) -> Option<f64> {
        let (sum, count) = self.current;
        (count > 0).then(|| (sum / f64::from(count) * UNIT).round() / UNIT)
    }

    fn manage(&mut self, mean: f64, variance: f64) {
        let current = self.current();
        let too_long = mean + variance.sqrt() * RTT_DEVIATION_SCALE;
        let quick = current.is_some_and(|current| current <= mean);
        if self.level < self.max && self.reached_limit && !self.had_back_pressure && quick {
            self.level += 1;
        } else if self.had_back_pressure || current.is_some_and(|current| current >= too_long) {
            let fewer = (f64::from(self.level) * DECREASE_RATIO) as u32;
            self.level = fewer.max(self.min);
        }
    }

    fn remember(&mut self, current: f64) {
        self.past = Some(match self.past {
            None => (current, 0.0),
            Some((mean, variance)) => {
                let delta = current - mean;
                let increment = EWMA_ALPHA * delta;
                (mean + increment, (1.0 - EWMA_ALPHA) * (variance + delta * increment))
            }
        });
    }
}

impl Level for Vector {
    fn level(&self) -> u32 {
        self.level
    }

    fn started(&mut self, in_flight: u32, _now: Time) {
        self.reached_limit |= in_flight >= self.level;
    }

    fn ended(&mut self, sample: &Sample) {
        self.had_back_pressure |= sample.is_lost();
        if sample.outcome == Outcome::Succeeded {
            self.current.0 += sample.round_trip().as_secs_f64();
            self.current.1 += 1;
        }
        let current = self.current();
        match self.past {
            None => {
                let Some(current) = current else { return };
                self.remember(current);
                self.next_update = sample.now + Duration::from_secs_f64(current);
            }
            Some((mean, variance)) if sample.now >= self.next_update => {
                self.manage(mean, variance);
                if let Some(current) = current {
                    self.remember(current);
                }
                let mean = self.past.map_or(mean, |(mean, _)| mean);
                self.next_update = sample.now + Duration::from_secs_f64(mean);
                self.current = (0.0, 0);
                (self.had_back_pressure, self.reached_limit) = (false, false);
            }
            Some(_) => {}
        }
    }
}
