//! Which ids are decided: no message with such an id can still commit.
//!
//! Ids are drawn from a sequence, not in the order of commits: a transaction may draw id 7, another one draw 8 and
//! commit, and a reader that remembers 8 would never see 7. So messages are read only up to the *horizon*, below which
//! everything is decided.
//!
//! # Why it is safe
//!
//! A transaction that publishes takes, in this order (`write_publish` sees to it):
//!
//! 1. a number of its own, and the `RowExclusiveLock` on the table to which it appends; both in any order;
//! 2. the message's id.
//!
//! It keeps the number and the lock until it is over. PostgreSQL first takes a transaction that commits out of the list
//! of open ones, so that every later snapshot sees its rows, and then gives its locks up.
//!
//! A claim looks, in this order (`tidegate.look`):
//!
//! 1. at `D`, the last id that was drawn;
//! 2. at `W`, the numbers of all transactions that hold such a lock.
//!
//! Take any transaction `T` that has drawn an id up to `D`. It drew it before step 1, and had its number and its lock
//! before that. Either it still has them at step 2, then it is in `W`; or it was over before step 2, then every
//! snapshot from then on sees what it committed. So a **later** statement in whose snapshot no transaction of `W` is open
//! sees everything that will ever be committed with an id up to `D`: `D` is decided there, and that very statement may
//! read up to it. The claim itself may not, because its snapshot is older than its look.
//!
//! Nothing else is waited for: not for transactions of other databases, nor for those that write elsewhere.
//!
//! A transaction that is seen in `W` for the first time with `D` holds back this mark and all later ones for as long
//! as it is open, and none before: it drew no id up to an earlier mark, or it would have been in that one's `W`. So
//! each needs to be remembered once, with the first mark that it holds back.
//!
//! A transaction inside a savepoint that is rolled back may lose the lock, but then its ids are decided, too. A
//! prepared transaction keeps number and locks. While it is being prepared they move one by one, and for a moment step 2
//! sees a lock without a number: then all prepared transactions of the database are in `W`, and it is one of them.
//!
//! The simulator has a model of all this (`crates/sim/src/relay/database`), whose publishers and claims act in any
//! interleaving, and in which each step that is left out or done in another order loses messages.
//!
//! # What a crash does to it
//!
//! A server that crashes may draw the same ids and numbers again. It is in another epoch then, and whoever knows a
//! horizon of an earlier one forgets it (law 16).

use std::collections::BTreeMap;

/// Marks beyond this are thinned out: a transaction that is open for long costs precision, not memory.
const MOST_MARKS: usize = 256;

/// What a process knows about ids, within an epoch.
#[derive(Debug, Default)]
pub struct Horizon {
    /// Up to here all are decided.
    decided: i64,
    /// The last id that was drawn when this process looked last.
    drawn: i64,
    /// Ids that were the last one at some look, in their order.
    marks: Vec<i64>,
    /// Transactions that may be open, and the first mark that each holds back.
    writers: BTreeMap<i64, i64>,
}

/// What a statement saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Up to here all were decided in its snapshot.
    pub decided: i64,
    /// Those of the writers it was asked about that were open in its snapshot.
    pub open: Vec<i64>,
    /// The last id that was drawn, looked at later.
    pub drawn: i64,
    /// The open transactions that may have drawn ids up to it, looked at later still; nothing if it was not asked.
    pub writers: Option<Vec<i64>>,
}

/// What a statement is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Ids up to which all may be decided.
    pub marks: Vec<i64>,
    /// Transactions that may be open.
    pub writers: Vec<i64>,
    /// The first mark that each of the writers holds back.
    pub holds: Vec<i64>,
    /// Ids beyond this have no mark yet.
    pub marked: i64,
}

impl Horizon {
    /// What to ask the next statement about.
    pub fn ask(&self) -> Asked {
        let (writers, holds) = self.writers.iter().unzip();
        let marks: Vec<i64> =
            [self.decided].into_iter().chain(self.marks.iter().copied()).collect();
        let marked = marks.iter().copied().max().unwrap_or(0);
        Asked { marks, writers, holds, marked }
    }

    /// Learns what a statement saw that was asked about `asked`. Answers may come in any order.
    pub fn learn(&mut self, asked: &Asked, seen: &Seen) {
        self.decided = self.decided.max(seen.decided);
        self.drawn = self.drawn.max(seen.drawn);
        for over in asked.writers.iter().filter(|writer| !seen.open.contains(writer)) {
            self.writers.remove(over);
        }
        if let Some(writers) = &seen.writers {
            self.marks.push(seen.drawn);
            for writer in writers {
                let first = self.writers.entry(*writer).or_insert(seen.drawn);
                *first = seen.drawn.min(*first);
            }
        }
        self.marks.retain(|mark| *mark > self.decided);
        self.marks.sort_unstable();
        self.marks.dedup();
        if self.marks.len() > MOST_MARKS {
            let mut keep = false;
            self.marks.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }

    /// Whether ids were drawn that are not decided yet.
    pub fn is_behind(&self) -> bool {
        self.drawn > self.decided
    }

    /// Whether the last id is one that was decided long ago: the sequence was set back.
    pub fn is_set_back(&self, drawn: i64) -> bool {
        drawn < self.decided
    }
}

#[cfg(test)]
#[path = "horizon_tests.rs"]
mod tests;
