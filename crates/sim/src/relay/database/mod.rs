//! PostgreSQL, as far as it decides which messages a claim may read: the sequence of ids, the numbers of transactions,
//! their locks, and what prepared ones do to both.
//!
//! Everything happens in single steps, between which others may act, in the order in which PostgreSQL takes them.
//! `core/src/outbox/horizon.rs` says why nothing is lost; here it is tried.

mod claim;
mod mistake;
mod transaction;

pub use claim::Look;
pub use mistake::Mistake;
pub use transaction::{Step, Transaction, steps};

use std::collections::BTreeSet;

/// Who has a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The transaction that is open in a session.
    Session(u64),
    /// A prepared transaction.
    Prepared(i64),
}

/// On what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// A table of messages, in order to write.
    Table,
    /// The number of the transaction itself.
    Number(i64),
}

/// A row of `pg_locks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lock {
    /// Who has it.
    pub owner: Owner,
    /// On what.
    pub on: On,
    /// Whether its session keeps it, and not the table that all share. Sessions are looked at first.
    pub fast: bool,
}

/// What all sessions share.
#[derive(Clone, Debug, Default)]
pub struct Database {
    last_id: i64,
    last_number: i64,
    /// Transactions that are under way: a snapshot does not see what they wrote.
    open: BTreeSet<i64>,
    locks: BTreeSet<Lock>,
    /// What `pg_prepared_xacts` shows.
    prepared: BTreeSet<i64>,
}

impl Database {
    /// The locks that are there.
    pub fn locks(&self) -> impl Iterator<Item = Lock> {
        self.locks.iter().copied()
    }

    /// The prepared transactions that are shown.
    pub fn prepared(&self) -> impl Iterator<Item = i64> {
        self.prepared.iter().copied()
    }

    fn give_up(&mut self, owner: Owner, on: On) {
        self.locks.retain(|lock| lock.owner != owner || lock.on != on);
    }
}

/// What `tidegate.look` makes of locks and prepared transactions: who may have drawn ids.
pub fn writers(locks: &[Lock], prepared: &[i64]) -> BTreeSet<i64> {
    let writing: BTreeSet<Owner> =
        locks.iter().filter(|lock| lock.on == On::Table).map(|lock| lock.owner).collect();
    let number_of = |owner: Owner| {
        locks.iter().filter(move |lock| lock.owner == owner).filter_map(|lock| match lock.on {
            On::Number(number) => Some(number),
            On::Table => None,
        })
    };
    let numbered = writing.iter().flat_map(|owner| number_of(*owner));
    let is_unknown = writing.iter().any(|owner| number_of(*owner).next().is_none());
    let prepared = prepared.iter().copied().filter(|_| is_unknown);
    numbered.chain(prepared).collect()
}
