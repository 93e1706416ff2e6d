//! Refusals in a row: the service accepts less than it did.
//!
//! One refusal with no more in flight than was accepted proves little: the service may have been
//! busier than it seemed. Many in a row, and none accepted that started after the first of them, are a fall.

use super::{Before, outstanding::Seen};
use crate::Time;

/// So many in a row are a fall …
const FEWEST: u32 = 3;
/// … and one for each so many of the level.
const PER_LEVEL: u32 = 8;

/// Now, and when a request that started like the refused one should have been accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub now: Time,
    pub expected: Time,
}

/// What one more refusal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusals {
    /// It is alone, so far.
    One,
    /// There were others in a row with it.
    Several,
    /// There were so many that the service has fallen.
    Fall,
}

/// Unexplained refusals, none of them followed by an acceptance.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    first: u64,
    count: u32,
    many: bool,
    /// The youngest request that was accepted.
    accepted: u64,
    least: Seen,
    /// When one that started with the first of them should have been accepted.
    expected: Time,
    /// What was believed before the first of them.
    before: Option<Before>,
}

impl Run {
    /// One more, at this level.
    pub fn refused(&mut self, id: u64, seen: Seen, times: Times, before: Before) -> Refusals {
        let level = before.level;
        if id < self.accepted {
            return Refusals::One;
        }
        if self.count == 0 {
            (self.first, self.least, self.expected) = (id, seen, times.expected);
            self.before = Some(before);
        }
        self.count += 1;
        self.least.in_flight = self.least.in_flight.min(seen.in_flight);
        self.least.per_second = self.least.per_second.min(seen.per_second);
        self.many = self.count >= (FEWEST + level / PER_LEVEL).min(level);
        match self.count {
            _ if self.is_fall(times.now) => Refusals::Fall,
            1 => Refusals::One,
            _ => Refusals::Several,
        }
    }

    /// Until when it is not known whether it is a fall: nothing more should be sent until then.
    pub fn suspected_until(&self) -> Option<Time> {
        (self.count > 0 && self.many).then_some(self.expected)
    }

    /// Whether none was accepted that should have been by now.
    pub fn is_fall(&self, now: Time) -> bool {
        self.suspected_until().is_some_and(|until| now >= until)
    }

    /// A request was accepted.
    pub fn accepted(&mut self, id: u64) {
        self.accepted = self.accepted.max(id);
        if id > self.first {
            self.count = 0;
        }
    }

    /// The youngest request that was accepted.
    pub fn youngest_accepted(&self) -> u64 {
        self.accepted
    }

    /// It was dealt with. Returns what was believed before it.
    pub fn end(&mut self) -> Option<Before> {
        self.count = 0;
        self.before.take()
    }

    /// The least that was refused in this run.
    pub fn least(&self) -> Seen {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Belief, *};
    use std::time::Duration;

    fn refused(run: &mut Run, id: u64, per_second: u32) -> bool {
        refused_at(run, id, per_second, Duration::from_secs(2))
    }

    fn refused_at(run: &mut Run, id: u64, per_second: u32, now: Time) -> bool {
        let before = Before { belief: Belief::default(), level: 20 };
        let times = Times { now, expected: Duration::from_secs(1) };
        run.refused(id, Seen { in_flight: 20, per_second }, times, before) == Refusals::Fall
    }

    #[test]
    fn several_in_a_row_are_a_fall() {
        let mut run = Run::default();
        assert!(![1, 2, 3, 4].map(|id| refused(&mut run, id, 100 + id as u32)).contains(&true));
        assert!(refused(&mut run, 5, 99));
        assert_eq!(run.least().per_second, 99);
    }

    #[test]
    fn what_was_accepted_in_between_ends_it() {
        let mut run = Run::default();
        for id in 0..100 {
            assert!(!refused(&mut run, 2 * id, 1));
            run.accepted(2 * id + 1);
        }
    }

    #[test]
    fn refusals_come_sooner_than_answers() {
        let mut run = Run::default();
        let soon = Duration::from_millis(900);
        assert!(!(0..100).any(|id| refused_at(&mut run, id, 1, soon)));
        assert!(refused(&mut run, 100, 1));
    }

    #[test]
    fn answers_to_older_requests_do_not() {
        let mut run = Run::default();
        let fell = (10..20).any(|id| {
            run.accepted(id - 10);
            refused(&mut run, id, 1)
        });
        assert!(fell);
    }
}
