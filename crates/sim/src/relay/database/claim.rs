//! What one statement that reads messages sees, step by step: `claim.sql` and `tidegate.look`.

use super::{Database, Lock, Mistake, Owner, writers};
use std::collections::BTreeSet;
use tidegate_core::outbox::horizon::{Asked, Seen};

/// A claim under way.
#[derive(Clone, Debug)]
pub struct Look {
    mistake: Option<Mistake>,
    /// Transactions that were under way in its snapshot …
    open: BTreeSet<i64>,
    /// … and the first number that was not given away by then.
    next_number: i64,
    drawn: Option<i64>,
    /// What sessions keep.
    fast: Option<Vec<Lock>>,
    /// What all share.
    shared: Option<Vec<Lock>>,
    writers: Option<Vec<i64>>,
}

impl Look {
    /// Takes the snapshot. What the claim reads it reads now.
    pub fn begin(database: &Database, mistake: Option<Mistake>) -> Self {
        Self {
            mistake,
            open: database.open.clone(),
            next_number: database.last_number + 1,
            drawn: None,
            fast: None,
            shared: None,
            writers: None,
        }
    }

    /// The next step. Returns whether it was the last.
    pub fn step(&mut self, database: &Database, asked: &Asked) -> bool {
        if self.drawn.is_none() && self.mistake != Some(Mistake::LooksAtLocksFirst) {
            self.drawn = Some(database.last_id);
            return database.last_id <= asked.marked;
        }
        let locks = |fast| Some(database.locks().filter(|lock| lock.fast == fast).collect());
        match (&self.fast, &self.shared) {
            (None, _) => self.fast = locks(true),
            (_, None) => self.shared = locks(false),
            (Some(fast), Some(shared)) => {
                let locks: Vec<Lock> = fast.iter().chain(shared).copied().collect();
                self.writers = Some(self.writers(&locks, &database.prepared));
                let drawn = *self.drawn.get_or_insert(database.last_id);
                self.writers.take_if(|_| drawn <= asked.marked);
                return true;
            }
        }
        false
    }

    fn writers(&self, locks: &[Lock], prepared: &BTreeSet<i64>) -> Vec<i64> {
        let is_session = |lock: &Lock| matches!(lock.owner, Owner::Session(_));
        let sessions: Vec<Lock> = locks.iter().copied().filter(is_session).collect();
        let prepared: Vec<i64> = prepared.iter().copied().collect();
        let found = match self.mistake {
            Some(Mistake::WaitsForNobody) => BTreeSet::new(),
            Some(Mistake::ForgetsPrepared) => writers(&sessions, &[]),
            Some(Mistake::ForgetsPreparing) => writers(locks, &[]),
            _ => writers(locks, &prepared),
        };
        found.into_iter().collect()
    }

    /// What it tells in the end, as `claim.sql` does.
    pub fn seen(&self, asked: &Asked) -> Seen {
        let is_open = |number: i64| self.open.contains(&number) || number >= self.next_number;
        let holding = asked.writers.iter().zip(&asked.holds).filter(|(it, _)| is_open(**it));
        let held = holding.clone().map(|(_, mark)| *mark).min().unwrap_or(i64::MAX);
        let decided = asked.marks.iter().copied().filter(|mark| *mark < held).max().unwrap_or(0);
        let drawn = self.drawn.unwrap_or(0);
        let at_once = self.mistake == Some(Mistake::ReadsAtOnce)
            && held == i64::MAX
            && self.writers.as_ref().is_some_and(Vec::is_empty);
        Seen {
            decided: if at_once { drawn } else { decided },
            open: holding.map(|(number, _)| *number).collect(),
            drawn,
            writers: self.writers.clone(),
        }
    }
}
