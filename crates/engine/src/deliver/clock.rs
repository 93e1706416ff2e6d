//! The time by which a process paces itself.

use std::{
    future::Future,
    time::{Duration, SystemTime},
};
use tidegate_pacer::{Clock, Time};
use tokio::time::{Instant, sleep_until};

/// Time since 1970: read once, and steady from there on.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    origin: Instant,
    since_1970: Duration,
}

impl WallClock {
    /// Starts now.
    pub fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self { origin: Instant::now(), since_1970: since_1970.unwrap_or_default() }
    }

    /// The time now.
    pub fn time(&self) -> Time {
        self.since_1970 + self.origin.elapsed()
    }
}

impl Clock for WallClock {
    fn now(&self) -> Time {
        self.time()
    }

    fn sleep_until(&self, time: Time) -> impl Future<Output = ()> + Send {
        sleep_until(self.origin + time.saturating_sub(self.since_1970))
    }
}
