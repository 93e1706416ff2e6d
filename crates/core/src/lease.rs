//! The right to an interval until a time.

use crate::{BatchId, Range};
use serde::{Deserialize, Serialize};

/// Grows with every lease a store hands out. Whoever holds an older fence has lost the interval.
/// Fences of batches are [`stamps`](crate::stamp): a store that went back in time does not hand out
/// a fence that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence(pub i64);

impl Fence {
    /// Of a lease that nobody holds: stores hand out fences above it.
    pub const NOBODY: Self = Self(0);
}

/// Names one worker process for people who look at leases. Decides nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub String);

/// The right to act on some runs of one batch until the store's clock passes its expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The batch that the runs belong to.
    pub batch: BatchId,
    /// Proves the right when settling, renewing or giving back.
    pub fence: Fence,
    /// What is leased.
    pub items: Items,
    /// A run of it may have ended workers before. The worker holds no other such lease, and settles
    /// it as soon as it can.
    pub suspect: bool,
}

/// What one lease covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Items {
    /// Runs never tried before, or left over by a worker that lost its lease.
    Range(Range),
    /// Runs that failed before and are due again, in index order.
    Retries(Vec<RetryItem>),
}

/// A run that failed before and is due again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryItem {
    /// Which run.
    pub index: u64,
    /// How many attempts have failed so far.
    pub attempts: u32,
}

impl Items {
    /// How many runs are covered.
    pub fn len(&self) -> u64 {
        match self {
            Items::Range(range) => range.len(),
            Items::Retries(items) => items.len() as u64,
        }
    }

    /// Whether nothing is covered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `n`th run in the order in which runs are acted on and settled.
    pub fn nth(&self, n: u64) -> RetryItem {
        match self {
            Items::Range(range) => RetryItem { index: range.lo + n, attempts: 0 },
            Items::Retries(items) => items[n as usize],
        }
    }
}
