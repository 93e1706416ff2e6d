//! Gradient2 as Netflix describes it: in each sampling window, the level follows the long-term average of
//! round trips divided by the mean of this window, plus a small queue. As published it ignores
//! rejections; here a window with a loss multiplies the level by 0.9 instead.

use super::{Level, Sample, first_level, within};
use crate::{Options, Outcome, Time};
use std::time::Duration;

/// How far the level moves to its new value in each window.
const SMOOTHING: f64 = 0.2;
/// Growth per window while round trips stay as they are.
const QUEUE: f64 = 4.0;
/// So much longer than usual a round trip may be.
const TOLERANCE: f64 = 1.5;
/// Windows in the long-term average …
const LONG_WINDOW: f64 = 600.0;
/// … of which so many are averaged plainly.
const WARM_UP: u32 = 10;
/// What is left after a window with a loss.
const DECREASE: f64 = 0.9;
/// A window is so many times its shortest round trip. A second, which is usual, is a hundred round trips of
/// some services.
const WINDOW: u32 = 2;

pub(super) struct Gradient2 {
    options: Options,
    level: f64,
    long: f64,
    windows: u32,
    window: Window,
    next_update: Time,
}

#[derive(Default)]
struct Window {
    sum: f64,
    count: u32,
    shortest: Duration,
    in_flight: u32,
    has_loss: bool,
}

impl Window {
    fn add(&mut self, sample: &Sample) {
        self.in_flight = self.in_flight.max(sample.in_flight);
        self.has_loss |= sample.is_lost();
        if sample.outcome == Outcome::Succeeded {
            let round_trip = sample.round_trip();
            let first = self.count == 0;
            self.shortest = if first { round_trip } else { self.shortest.min(round_trip) };
            self.sum += round_trip.as_secs_f64();
            self.count += 1;
        }
    }
}

impl Gradient2 {
    pub fn new(options: &Options) -> Self {
        Self {
            options: options.clone(),
            level: f64::from(first_level(options)),
            long: 0.0,
            windows: 0,
            window: Window::default(),
            next_update: Time::ZERO,
        }
    }

    /// Takes a mean into the long-term average.
    fn average(&mut self, short: f64) {
        if self.windows < WARM_UP {
            let before = self.long * f64::from(self.windows);
            self.windows += 1;
            self.long = (before + short) / f64::from(self.windows);
        } else {
            self.long += 2.0 / (LONG_WINDOW + 1.0) * (short - self.long);
        }
    }

    fn update(&mut self, window: &Window) {
        if window.has_loss {
            self.level = within(&self.options, self.level * DECREASE);
        }
        if window.count == 0 {
            return;
        }
        let short = window.sum / f64::from(window.count);
        self.average(short);
        let long = self.long;
        if long / short > 2.0 {
            self.long *= 0.95;
        }
        // With fewer in flight, it is the sender that holds requests back.
        if !window.has_loss && f64::from(window.in_flight) >= self.level / 2.0 {
            let gradient = (TOLERANCE * long / short).clamp(0.5, 1.0);
            let new = self.level * gradient + QUEUE;
            let level = self.level * (1.0 - SMOOTHING) + new * SMOOTHING;
            self.level = within(&self.options, level);
        }
    }
}

impl Level for Gradient2 {
    fn level(&self) -> u32 {
        self.level as u32
    }

    fn ended(&mut self, sample: &Sample) {
        self.window.add(sample);
        if sample.now >= self.next_update {
            let window = std::mem::take(&mut self.window);
            self.update(&window);
            self.next_update = sample.now + window.shortest * WINDOW;
        }
    }
}
