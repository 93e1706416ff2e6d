//! What was lost with its workers again and again.

use super::{Content, ExceptionRow, RangeLease, Row, Tries, claim::Claiming};
use crate::{
    BatchId, ExceptionState, Fence, Range,
    suspect::{self, Fate, LOST_TWICE},
};
use std::time::Duration;

/// What can be leased again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The range of a batch that ends here.
    Range(BatchId, u64),
    /// This run of a batch.
    Retry(BatchId, u64),
}

impl Place {
    pub(super) fn batch(self) -> BatchId {
        let (Self::Range(batch, _) | Self::Retry(batch, _)) = self;
        batch
    }
}

impl Row {
    pub(super) fn range_fate(&self, hi: u64, lease: &RangeLease) -> Fate {
        let max_attempts = self.batch.retry.max_attempts;
        suspect::range_fate(lease.tries.leases, lease.suspect, hi - lease.lo, max_attempts)
    }

    pub(super) fn retry_fate(&self, exception: &ExceptionRow) -> Fate {
        suspect::run_fate(exception.tries.leases, self.batch.retry.max_attempts)
    }
}

impl Content {
    /// Ranges whose lease has expired, by batch and end, and what becomes of them.
    pub(super) fn lost_ranges<'a>(
        &'a self,
        claiming: &Claiming<'a>,
    ) -> impl Iterator<Item = (Place, Fate)> + use<'a> {
        let now = claiming.now;
        self.wanted(claiming.request).flat_map(move |row| {
            let expired = row.leases.iter().filter(move |(_, lease)| lease.expires <= now);
            expired.map(|(hi, lease)| (Place::Range(row.batch.id, *hi), row.range_fate(*hi, lease)))
        })
    }

    fn due_retries<'a>(
        &'a self,
        claiming: &Claiming<'a>,
    ) -> impl Iterator<Item = (Place, Fate)> + use<'a> {
        let now = claiming.now;
        self.wanted(claiming.request).flat_map(move |row| {
            let due = row.exceptions.iter().filter(move |(_, exception)| exception.is_due(now));
            due.map(|(index, exception)| {
                (Place::Retry(row.batch.id, *index), row.retry_fate(exception))
            })
        })
    }

    /// Ranges to split and runs to give up, of each kind at most `most`.
    pub(super) fn lost_for_good(&self, claiming: &Claiming<'_>, most: usize) -> Vec<Place> {
        let ended = |(_, fate): &(Place, Fate)| matches!(fate, Fate::Split | Fate::Dead);
        let ranges = self.lost_ranges(claiming).filter(ended).take(most);
        let retries = self.due_retries(claiming).filter(ended).take(most);
        ranges.chain(retries).map(|(place, _)| place).collect()
    }

    /// Whether the worker that claims holds a suspect.
    pub(super) fn holds_suspect(&self, claiming: &Claiming<'_>) -> bool {
        let (worker, now) = (&claiming.request.worker.0, claiming.now);
        self.batches.values().any(|row| {
            let range =
                |held: &RangeLease| held.suspect && held.worker == *worker && held.expires > now;
            let retry = |held: &ExceptionRow| {
                let alone = held.tries.leases > LOST_TWICE && held.fence.is_some();
                alone && held.worker == *worker && held.is_due(Duration::MAX) && held.due > now
            };
            row.leases.values().any(range) || row.exceptions.values().any(retry)
        })
    }

    /// The first suspect, for a worker that holds none.
    pub(super) fn first_suspect(&self, claiming: &Claiming<'_>) -> Option<Place> {
        if self.holds_suspect(claiming) {
            return None;
        }
        let mut waiting = self.lost_ranges(claiming).chain(self.due_retries(claiming));
        waiting.find(|(_, fate)| *fate == Fate::Alone).map(|(place, _)| place)
    }

    /// Splits a range, or gives up a run.
    pub(super) fn split_or_give_up(&mut self, place: Place, now: Duration) {
        let row = self.batches.get_mut(&place.batch()).expect("it was found a moment ago");
        match place {
            Place::Range(_, hi) => {
                let lease = row.leases.remove(&hi).expect("it was found a moment ago");
                match row.range_fate(hi, &lease) {
                    Fate::Dead => {
                        let dead = ExceptionRow::lost(lease.tries, now);
                        row.exceptions.insert(lease.lo, dead);
                    }
                    _ => row.split(hi, &lease, now),
                }
            }
            Place::Retry(_, index) => {
                let exception = row.exceptions.get_mut(&index).expect("it was found a moment ago");
                *exception = ExceptionRow::lost(exception.tries, now);
            }
        }
    }
}

impl Row {
    fn split(&mut self, hi: u64, lease: &RangeLease, now: Duration) {
        let lost = (lease.fence != Fence::NOBODY).then_some(lease.fence).or(lease.tries.lost);
        for part in suspect::split(Range::new(lease.lo, hi)) {
            let part_lease = RangeLease {
                lo: part.lo,
                fence: Fence::NOBODY,
                expires: now,
                worker: lease.worker.clone(),
                tries: Tries { leases: LOST_TWICE, lost },
                suspect: true,
            };
            self.leases.insert(part.hi, part_lease);
        }
    }
}

impl ExceptionRow {
    fn lost(tries: Tries, now: Duration) -> Self {
        Self {
            attempts: tries.leases,
            state: ExceptionState::Dead,
            reason: suspect::reason(tries.leases),
            due: now,
            fence: None,
            worker: String::new(),
            tries,
        }
    }
}
