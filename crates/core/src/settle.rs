//! What a worker writes back, in one transaction.

use crate::{
    BatchId, Fence, Items, Page, Range, RetryItem, RetryPolicy, RunError, limits::MAX_REASON_BYTES,
};
use std::time::Duration;

/// Everything that one transaction settles.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Progress of leases; at most one part per lease.
    pub parts: Vec<Part>,
    /// For each batch among the parts: what this worker's aggregates are after this settlement.
    pub totals: Vec<Total>,
    /// How long the leases that go on are renewed for.
    pub lease: Duration,
}

impl Settlement {
    /// How many rows it writes.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(Part::rows).sum::<u64>() + self.totals.len() as u64
    }
}

/// Progress of one lease.
#[derive(Clone, Debug)]
pub struct Part {
    /// The lease's batch.
    pub batch: BatchId,
    /// The lease's fence.
    pub fence: Fence,
    /// Which runs are settled.
    pub progress: Progress,
    /// The results that are kept.
    pub page: Option<Page>,
    /// The runs among the settled ones that failed.
    pub failed: Vec<Failed>,
}

impl Part {
    /// The page; the lease, or the retries with it; the failed ones, which retries have a row of
    /// already.
    fn rows(&self) -> u64 {
        let page = u64::from(self.page.is_some());
        page + match &self.progress {
            Progress::Range { .. } => 1 + self.failed.len() as u64,
            Progress::Retries { settled } => settled.len() as u64,
        }
    }
}

/// Which runs of a lease are settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The first runs of what is left of a range.
    Range {
        /// They begin where the last settlement ended.
        settled: Range,
        /// Where the leased range ends; with `settled.hi` the lease is given up.
        end: u64,
    },
    /// Some retries.
    Retries {
        /// Their indexes, ascending.
        settled: Vec<u64>,
    },
}

impl Progress {
    /// The progress from item `from` to item `to` of a lease.
    pub fn of(items: &Items, from: u64, to: u64) -> Self {
        match items {
            Items::Range(range) => Progress::Range {
                settled: Range::new(range.lo + from, range.lo + to),
                end: range.hi,
            },
            Items::Retries(retries) => Progress::Retries {
                settled: retries[from as usize..to as usize].iter().map(|r| r.index).collect(),
            },
        }
    }

    /// How many runs are settled.
    pub fn len(&self) -> u64 {
        match self {
            Progress::Range { settled, .. } => settled.len(),
            Progress::Retries { settled } => settled.len() as u64,
        }
    }

    /// Whether no run is settled.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which run.
    pub index: u64,
    /// How many attempts have failed.
    pub attempts: u32,
    /// Why.
    pub reason: String,
    /// When it is due again, from now by the store's clock; `None`: it is dead.
    pub delay: Option<Duration>,
}

impl Failed {
    /// The verdict on a run that failed: tried again later, or dead. For `jitter` see
    /// [`RetryPolicy::delay`].
    pub fn judge(policy: &RetryPolicy, item: RetryItem, error: RunError, jitter: u64) -> Self {
        if error.postponed.is_some() {
            let RetryItem { index, attempts } = item;
            let (reason, delay) = (storable(error.reason), error.postponed);
            return Self { index, attempts, reason, delay };
        }
        let attempts = item.attempts + 1;
        let delay = policy.delay(attempts, jitter).filter(|_| !error.permanent);
        Self { index: item.index, attempts, reason: storable(error.reason), delay }
    }
}

/// Cuts a reason to what may be stored, at a character's border. NUL cannot be stored as text.
pub fn storable(reason: String) -> String {
    let mut reason = reason.replace('\0', "\u{fffd}");
    if reason.len() > MAX_REASON_BYTES {
        let cut = (0..=MAX_REASON_BYTES).rev().find(|&i| reason.is_char_boundary(i)).unwrap_or(0);
        reason.truncate(cut);
    }
    reason
}

/// A worker's aggregates over all it ever settled of a batch. It overwrites what the same worker
/// wrote before, so that a batch has one row per worker, whatever its number of ranges.
#[derive(Clone, Debug)]
pub struct Total {
    /// Which batch.
    pub batch: BatchId,
    /// Names the row. Nobody else writes to it.
    pub accumulator: AccumulatorId,
    /// The sequence that the row must have for this total to fit: that of the worker's settlement
    /// before this one, or [`Total::NONE`]. Whoever overwrites another sum counts runs twice, or not
    /// at all.
    pub before: i64,
    /// A [`stamp`](crate::stamp) that grows with every settlement: a settlement that is sent again
    /// after an unknown outcome is recognized by it. No two different settlements have the same.
    pub sequence: i64,
    /// [`Aggregates::encode`](crate::Aggregates::encode).
    pub body: Vec<u8>,
}

impl Total {
    /// The sequence of a row that is not there.
    pub const NONE: i64 = 0;
}

/// Names the aggregates of one worker in one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccumulatorId(pub i64);

/// What became of a settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// All of it is durable.
    Applied,
    /// These leases were lost before; nothing at all was changed.
    Late(Vec<Fence>),
    /// What the store has of this worker's totals in these batches is not what this settlement
    /// builds on; nothing at all was changed. The store went back in time: the worker forgets its
    /// sums, which others settle again, and begins new totals.
    Forgotten(Vec<BatchId>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_postponed_uses_up_no_attempt() {
        let item = RetryItem { index: 7, attempts: 4 };
        let (delay, policy) = (Duration::from_secs(9), RetryPolicy::default());
        let failed = Failed::judge(&policy, item, RunError::postponed("busy", delay), 0);
        assert_eq!((failed.attempts, failed.delay), (4, Some(delay)));
    }

    #[test]
    fn a_long_reason_is_cut_at_a_character() {
        let item = RetryItem { index: 7, attempts: 4 };
        let error = RunError::new("é\0".repeat(3_000));
        let failed = Failed::judge(&RetryPolicy::default(), item, error, 0);
        assert_eq!((failed.index, failed.attempts, failed.delay), (7, 5, None));
        assert!(failed.reason.len() <= MAX_REASON_BYTES && !failed.reason.contains('\0'));
    }
}
