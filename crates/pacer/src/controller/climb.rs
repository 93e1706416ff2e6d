//! Growth in bounded steps, each proven by an answer before the next.
//!
//! At first the level doubles, then grows by less: one step too far into a service that slows down
//! steeply is paid for with minutes. Growth later, above a level that once ended it, is slower still.

/// Doubling ends here.
const DOUBLED: u32 = 16;
/// Beyond that the level grows by this in a round trip …
const FACTOR: f64 = 1.4;
/// … and by this after the first time that something ended it.
const AGAIN: f64 = 1.25;
/// A step is proven by an answer to a request that started with no fewer than this share below the level.
const NEAR: u32 = 8;

/// How the level grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Climb {
    /// A limit was found before.
    ended: bool,
    /// A level that was good before: doubling leads there.
    goal: Option<u32>,
}

impl Climb {
    /// Something ended the growth.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Doubles up to a level that was good before.
    pub fn return_to(&mut self, level: u32) {
        self.goal = Some(level);
    }

    /// That level was not good.
    pub fn forget_goal(&mut self) {
        self.goal = None;
    }

    /// The level that was good before, while it is on its way back.
    pub fn goal(&self) -> Option<u32> {
        self.goal
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// How much less than the level still counts as the level.
    pub fn slack(level: u32) -> u32 {
        level / NEAR
    }

    /// The level after this one. Where answers seem to get slower, steps are small.
    pub fn next(&mut self, level: u32, slower: bool) -> u32 {
        self.goal.take_if(|goal| *goal <= level);
        let by = |factor: f64| (f64::from(level) * factor).ceil() as u32;
        match self.goal {
            Some(goal) => goal.min(level.saturating_mul(2)),
            None if self.ended || slower => by(AGAIN),
            None if level < DOUBLED => (level * 2).min(DOUBLED),
            None => by(FACTOR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(climb: &mut Climb, mut level: u32) -> Vec<u32> {
        let mut step = || {
            level = climb.next(level, false);
            level
        };
        (0..6).map(|_| step()).collect()
    }

    #[test]
    fn the_start_is_bounded() {
        assert_eq!(levels(&mut Climb::default(), 1), [2, 4, 8, 16, 23, 33]);
    }

    #[test]
    fn later_steps_are_smaller() {
        let mut climb = Climb::default();
        climb.end();
        assert_eq!(levels(&mut climb, 8), [10, 13, 17, 22, 28, 35]);
    }

    #[test]
    fn a_level_that_was_good_is_reached_by_doubling() {
        let mut climb = Climb::default();
        climb.end();
        climb.return_to(50);
        assert_eq!(levels(&mut climb, 5), [10, 20, 40, 50, 63, 79]);
        assert!(climb.goal().is_none());
    }
}
