//! Runs that may end the process that carries them out: pure decisions about leases that were lost.
//!
//! A lease that expires was lost with its worker, as far as a store can tell. After two losses a run
//! of it is suspected. The range is then split until its runs are leased one by one, and a worker
//! holds at most one suspect at a time: a process that ends takes no second suspect with it. Only a
//! run that was lost alone can be given up, and not before it was lost three times as a suspect: workers
//! are also killed by people and machines. A worker that is alive gives back what it has lost
//! ([`Source::give_back`](crate::Source::give_back)), and that loss is not counted.
//!
//! The PostgreSQL store decides the same in SQL; the differential test compares the two.

use crate::Range;

/// After so many losses a range, or a retry, is suspected.
pub const LOST_TWICE: u32 = 2;

/// A suspected range is split into at most so many parts each time. Fewer would end more workers
/// before the run is found; more would lease harmless runs one by one.
pub const PARTS: u64 = 64;

/// The fewest losses with which a run is given up: two that made it suspect, and three since. A run
/// that ends workers may take a suspect of another range with it, until it is a suspect itself.
pub const FEWEST_LOSSES: u32 = 5;

/// What becomes of work whose lease was lost or never taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is leased like any other.
    Leased,
    /// It is split, and its parts are suspects.
    Split,
    /// It is leased to a worker that holds no other suspect.
    Alone,
    /// Its only run is given up.
    Dead,
}

/// What becomes of a range of `length` runs that was lost `losses` times. A suspect is part of a
/// range that was lost twice; the first loss of its own is the third.
pub fn range_fate(losses: u32, suspect: bool, length: u64, max_attempts: u32) -> Fate {
    match (suspect, length) {
        (false, _) if losses < LOST_TWICE => Fate::Leased,
        (false, 2..) => Fate::Split,
        (true, 2..) if losses > LOST_TWICE => Fate::Split,
        (_, 1) => run_fate(losses, max_attempts),
        _ => Fate::Alone,
    }
}

/// What becomes of a single run that was lost `losses` times.
pub fn run_fate(losses: u32, max_attempts: u32) -> Fate {
    match losses {
        _ if losses < LOST_TWICE => Fate::Leased,
        _ if losses < max_attempts.max(FEWEST_LOSSES) => Fate::Alone,
        _ => Fate::Dead,
    }
}

/// The parts of a suspected range, from the lowest to the highest.
pub fn split(range: Range) -> Vec<Range> {
    let length = range.len().div_ceil(PARTS).max(1);
    let part = |lo| Range::new(lo, range.hi.min(lo + length));
    (range.lo..range.hi).step_by(length as usize).map(part).collect()
}

/// Why a run was given up.
pub fn reason(losses: u32) -> String {
    format!("its worker ended {losses} times")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_split_until_its_runs_are_alone() {
        for length in [1, 2, 63, 64, 65, 4_711, 10_000_000] {
            let mut range = Range::new(5, 5 + length);
            let mut splits = 0;
            while range.len() > 1 {
                let parts = split(range);
                assert!(parts.len() as u64 <= PARTS);
                assert_eq!((parts[0].lo, parts[parts.len() - 1].hi), (range.lo, range.hi));
                assert!(parts.windows(2).all(|pair| pair[0].hi == pair[1].lo));
                range = parts[parts.len() / 2];
                splits += 1;
            }
            assert!(splits <= 4, "{splits} splits of {length} runs");
        }
    }

    #[test]
    fn only_a_run_that_was_lost_alone_is_given_up() {
        for max_attempts in 1..8 {
            for losses in 0..10 {
                for length in [1, 2, 100] {
                    let fate = range_fate(losses, true, length, max_attempts);
                    let dead = length == 1 && losses >= 5 && losses >= max_attempts;
                    assert_eq!(fate == Fate::Dead, dead, "{losses} of {length}");
                }
            }
        }
        assert_eq!(range_fate(1, false, 1, 1), Fate::Leased);
        assert_eq!(range_fate(2, false, 1, 1), Fate::Alone);
        assert_eq!(range_fate(2, false, 2, 1), Fate::Split);
        assert_eq!(range_fate(2, true, 2, 1), Fate::Alone);
        assert_eq!(range_fate(3, true, 2, 1), Fate::Split);
    }
}
