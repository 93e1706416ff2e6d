//! The requests of the last second, as a service that limits the rate counts them: refused ones, too.

use crate::Time;
use std::{collections::VecDeque, time::Duration};

const SECOND: Duration = Duration::from_secs(1);
/// Beyond this many requests per second no rate is learned: bounds the memory.
const MOST: usize = 4_096;

/// When the requests of the last second started.
#[derive(Clone, Debug, Default)]
pub(super) struct Window(VecDeque<Time>);

impl Window {
    /// How many requests started within the last second.
    pub fn count(&mut self, now: Time) -> u32 {
        while self.0.front().is_some_and(|sent| *sent + SECOND <= now) {
            self.0.pop_front();
        }
        self.0.len() as u32
    }

    /// A request starts. Returns how many did within the last second, itself included.
    pub fn start(&mut self, now: Time) -> u32 {
        if self.count(now) as usize == MOST {
            self.0.pop_front();
        }
        self.0.push_back(now);
        self.0.len() as u32
    }

    /// Whether one more may start if so many are accepted per second; if not, when.
    pub fn allows(&mut self, most: u32, now: Time) -> Result<(), Time> {
        let count = self.count(now);
        if count < most {
            return Ok(());
        }
        let leaves = self.0.get((count - most) as usize).copied().unwrap_or(now);
        Err(leaves + SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_is_mirrored() {
        let mut window = Window::default();
        let tenth = |n: u64| Duration::from_millis(100 * n);
        (0..20).for_each(|n| assert_eq!(window.start(tenth(n)), 10.min(n as u32 + 1)));
        assert_eq!(window.allows(11, tenth(19)), Ok(()));
        assert_eq!(window.allows(10, tenth(19)), Err(tenth(20)));
        assert_eq!(window.allows(8, tenth(19)), Err(tenth(22)));
        assert_eq!(window.allows(10, tenth(20)), Ok(()));
    }

    #[test]
    fn memory_is_bounded() {
        let mut window = Window::default();
        (0..10_000).for_each(|_| assert!(window.start(Time::ZERO) > 0));
        assert_eq!(window.0.len(), MOST);
    }
}
