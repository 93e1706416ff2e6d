//! A watch that is read as often as it matters.

use std::time::Duration;
use tokio::time::Instant;

/// Reading the clock should take less than a hundredth of the time it measures.
const WORTH_READING: Duration = Duration::from_micros(4);
/// Short runs between two readings, at most.
const MAX_UNREAD: u32 = 64;

/// The time between runs. Reading the clock takes as long as the shortest runs do, so that it is
/// read once for several of them: their times together are right, if not each one's.
pub struct Watch {
    /// The time as it was last read.
    pub now: Instant,
    /// Runs between two readings …
    stride: u32,
    /// … and how many of them are left.
    left: u32,
}

impl Watch {
    /// Reads the clock for the first time.
    pub fn start() -> Self {
        Self { now: Instant::now(), stride: 1, left: 1 }
    }

    /// Counts a run, and reads the clock if it is time to.
    pub fn run_ended(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            let before = self.now;
            self.read();
            let short = self.now - before < WORTH_READING * self.stride;
            self.stride = if short { (self.stride * 2).min(MAX_UNREAD) } else { 1 };
            self.left = self.stride;
        }
    }

    /// Reads the clock.
    pub fn read(&mut self) {
        self.now = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    /// How many of 200 runs of this length see the clock read after them.
    async fn readings(length: Duration) -> usize {
        let mut watch = Watch::start();
        let mut readings = 0;
        for _ in 0..200 {
            advance(length).await;
            let before = watch.now;
            watch.run_ended();
            readings += usize::from(watch.now != before);
        }
        readings
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_is_read_where_it_matters() {
        assert!(readings(Duration::from_micros(1)).await < 10);
        assert_eq!(readings(Duration::from_millis(1)).await, 200);
    }
}
