//! How fast something goes on, and how long it still takes.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The recent past.
const RECENT: Duration = Duration::from_secs(30);
/// An estimate after less than this would be a guess.
const ENOUGH: Duration = Duration::from_secs(1);

/// What was done by when. Only what is done while it is watched counts.
#[derive(Debug)]
pub struct Speed {
    seen: VecDeque<(Instant, u64)>,
}

impl Speed {
    /// Begins to watch something of which so much is done already.
    pub fn new(now: Instant, done: u64) -> Self {
        Self { seen: [(now, done)].into() }
    }

    /// So much is done now.
    pub fn see(&mut self, now: Instant, done: u64) {
        self.seen.push_back((now, done));
        while self.seen.len() > 2 && now - self.seen[1].0 >= RECENT {
            self.seen.pop_front();
        }
    }

    /// How much was done per second recently; `None` if it is not known yet.
    pub fn per_second(&self) -> Option<f64> {
        let ((from, before), (to, after)) = (*self.seen.front()?, *self.seen.back()?);
        let time = to - from;
        (time >= ENOUGH).then(|| after.saturating_sub(before) as f64 / time.as_secs_f64())
    }

    /// How long until all is done; `None` if that is not known.
    pub fn left(&self, all: u64) -> Option<Duration> {
        let left = all.saturating_sub(self.seen.back()?.1) as f64;
        Duration::try_from_secs_f64(left / self.per_second()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_does_not_count() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut speed = Speed::new(start, 500_000);
        assert_eq!(speed.left(1_000_000), None);
        speed.see(after(200), 500_200);
        assert_eq!(speed.left(1_000_000), None, "too early");
        for ms in (400..=2_000).step_by(200) {
            speed.see(after(ms), 500_000 + ms);
        }
        assert_eq!(speed.per_second(), Some(1_000.0));
        assert_eq!(speed.left(1_000_000), Some(Duration::from_millis(498_000)));
    }

    #[test]
    fn only_the_recent_past_counts() {
        let start = Instant::now();
        let mut speed = Speed::new(start, 0);
        (1..=100).for_each(|s| speed.see(start + Duration::from_secs(s), 10 * s));
        (1..=40).for_each(|s| speed.see(start + Duration::from_secs(100 + s), 1_000 + s));
        assert_eq!(speed.per_second(), Some(1.0));
        let stalled = Speed { seen: [(start, 5), (start + RECENT, 5)].into() };
        assert_eq!((stalled.per_second(), stalled.left(10)), (Some(0.0), None));
    }
}
