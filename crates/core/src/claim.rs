//! What a worker asks for, what it gets, and how fresh runs are shared out.

use crate::{
    Batch, BatchId, Lease, Range, Snapshot, SnapshotHash, WorkerId, limits::MAX_RETRIES_PER_LEASE,
};
use std::time::Duration;

/// Asks for leases.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Who asks.
    pub worker: WorkerId,
    /// At most this many leases.
    pub slots: usize,
    /// How many runs a lease should have.
    pub lengths: Lengths,
    /// Only batches of these workloads.
    pub workloads: Vec<String>,
    /// Only this batch.
    pub only: Option<BatchId>,
    /// How long the leases last, by the store's clock.
    pub lease: Duration,
    /// Snapshots that the worker has already.
    pub known: Vec<SnapshotHash>,
}

/// How many runs a lease should have, by batch.
#[derive(Clone, Debug)]
pub struct Lengths {
    /// For batches that the worker has no experience with.
    pub unknown: Length,
    /// For those it has.
    pub known: Vec<(BatchId, Length)>,
}

/// Bounds on the length of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Never longer than this.
    pub most: u64,
    /// Near the end of a batch ranges shrink, but not below this, unless less is left.
    pub least: u64,
}

impl Lengths {
    /// The bounds for one batch.
    pub fn of(&self, batch: BatchId) -> Length {
        self.known.iter().find(|(id, _)| *id == batch).map_or(self.unknown, |(_, length)| *length)
    }

    /// Most retries in one lease.
    pub fn most_retries(&self, batch: BatchId) -> usize {
        self.of(batch).most.clamp(1, MAX_RETRIES_PER_LEASE) as usize
    }

    /// How many of `due` retries a lease should have: spread over the slots, so that those that take
    /// long are not all one thread's.
    pub fn retries_per_lease(&self, batch: BatchId, due: usize, slots: usize) -> usize {
        due.div_ceil(slots.max(1)).clamp(1, self.most_retries(batch))
    }
}

/// What a worker got: everything needed to act.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    /// Expired leases first, then due retries, then fresh ranges.
    pub leases: Vec<Lease>,
    /// The batches of these leases.
    pub batches: Vec<Batch>,
    /// The snapshots of these batches that the worker did not have.
    pub snapshots: Vec<Snapshot>,
    /// Batches with nothing outstanding, which somebody must finalize.
    pub settled: Vec<BatchId>,
    /// How many of the batches asked for are still running, the settled ones included.
    pub open: u64,
    /// When the next lease expires or the next retry is due, if nothing else happens.
    pub next_due: Option<Duration>,
}

/// A running batch as the sharing sees it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Which batch.
    pub batch: BatchId,
    /// Its first index that was never leased.
    pub cursor: u64,
    /// Its number of runs.
    pub runs: u64,
    /// How many of its ranges are leased now, by all workers.
    pub active: u64,
}

/// Shares `slots` leases among batches: the batch with the fewest leases gets the next one, so that
/// a small batch is not stuck behind a huge one. Near a batch's end its ranges shrink to half of an
/// even share, so that no worker idles while another holds a long tail.
///
/// The PostgreSQL store does the same in SQL; the differential test compares the two.
pub fn share(candidates: &[Candidate], slots: usize, lengths: &Lengths) -> Vec<(BatchId, Range)> {
    let mut turns: Vec<(u64, BatchId)> = Vec::new();
    for candidate in candidates {
        let left = candidate.runs - candidate.cursor;
        turns.extend((1..=left.min(slots as u64)).map(|k| (candidate.active + k, candidate.batch)));
    }
    turns.sort_unstable();
    turns.truncate(slots);

    let mut ranges = Vec::new();
    for candidate in candidates {
        let count = turns.iter().filter(|(_, batch)| *batch == candidate.batch).count() as u64;
        let length = range_length(candidate, count, lengths.of(candidate.batch));
        ranges.extend((0..count).map_while(|k| {
            let lo = candidate.cursor + k * length;
            let hi = candidate.runs.min(lo + length);
            (lo < hi).then(|| (candidate.batch, Range::new(lo, hi)))
        }));
    }
    ranges
}

fn range_length(candidate: &Candidate, count: u64, bounds: Length) -> u64 {
    let left = candidate.runs - candidate.cursor;
    let share = left / (2 * (candidate.active + count)).max(1);
    share.max(bounds.least).min(bounds.most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(most: u64, least: u64) -> Lengths {
        Lengths { unknown: Length { most, least }, known: Vec::new() }
    }

    fn candidate(id: i64, cursor: u64, runs: u64, active: u64) -> Candidate {
        Candidate { batch: BatchId(id), cursor, runs, active }
    }

    #[test]
    fn the_batch_with_fewer_leases_goes_first() {
        let batches = [candidate(1, 0, 1_000_000, 6), candidate(2, 0, 1_000, 0)];
        let shared = share(&batches, 4, &lengths(10, 1));
        assert!(shared.iter().all(|(batch, _)| *batch == BatchId(2)));
        assert_eq!(shared.len(), 4);
    }

    #[test]
    fn equal_batches_share_evenly() {
        let batches = [candidate(1, 0, 100_000, 0), candidate(2, 0, 100_000, 0)];
        let shared = share(&batches, 4, &lengths(10, 1));
        let count = |id| shared.iter().filter(|(batch, _)| *batch == BatchId(id)).count();
        assert_eq!((count(1), count(2)), (2, 2));
    }

    #[test]
    fn ranges_shrink_towards_the_end() {
        let mut cursor = 0;
        let mut last = u64::MAX;
        while cursor < 10_000 {
            let shared = share(&[candidate(1, cursor, 10_000, 3)], 1, &lengths(4_000, 5));
            let range = shared[0].1;
            assert!(range.lo == cursor && range.len() <= last);
            last = range.len();
            cursor = range.hi;
        }
        assert!(last <= 5);
    }

    #[test]
    fn nothing_beyond_the_last_run() {
        let shared = share(&[candidate(1, 7, 10, 0)], 8, &lengths(100, 100));
        assert_eq!(shared, [(BatchId(1), Range::new(7, 10))]);
    }
}
