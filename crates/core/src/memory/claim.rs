//! Leases: expired ones first, then due retries, then fresh ranges.

use super::{Content, RangeLease, Row, Tries, suspects::Place};
use crate::{
    BatchId, BatchState, Fence, Items, Lease, Range, RetryItem,
    claim::{Candidate, Claim, ClaimRequest, share},
    limits::{DUE_WINDOW, MAX_LEASES_PER_CLAIM},
    suspect::Fate,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What one claim does is decided by what was stored when it began.
pub(super) struct Claiming<'a> {
    pub request: &'a ClaimRequest,
    pub noise: u64,
    pub now: Duration,
}

impl Claiming<'_> {
    fn expires(&self) -> Duration {
        self.now + self.request.lease
    }
}

impl Content {
    pub(super) fn claim(&mut self, request: ClaimRequest, noise: u64, now: Duration) -> Claim {
        let claiming = &Claiming { request: &request, noise, now };
        let slots = request.slots.min(MAX_LEASES_PER_CLAIM);
        let settled = self.wanted(&request).filter(|row| row.is_settled());
        let settled = settled.map(|row| row.batch.id).collect();
        let lost_for_good = self.lost_for_good(claiming, slots);
        let mut active = self.active(claiming);
        let expired = self.expired(claiming, slots);
        let suspect = self.first_suspect(claiming).filter(|_| expired.len() < slots);
        let again = expired.into_iter().chain(suspect);
        let mut leases: Vec<Lease> = again.map(|place| self.lease_again(place, claiming)).collect();
        for lease in leases.iter().filter(|lease| matches!(lease.items, Items::Range(_))) {
            *active.entry(lease.batch).or_default() += 1;
        }
        leases.extend(self.claim_due(claiming, slots - leases.len()));
        leases.extend(self.claim_fresh(claiming, slots - leases.len(), &active));
        let soon = !lost_for_good.is_empty();
        lost_for_good.into_iter().for_each(|place| self.split_or_give_up(place, now));
        let granted = (!leases.is_empty()).then_some(request.lease);
        let next_due = match soon {
            true => Some(Duration::ZERO),
            false => self.next_due(claiming).into_iter().chain(granted).min(),
        };
        Claim { settled, next_due, ..self.answer(&request, leases) }
    }

    /// How many ranges of each batch are leased and not expired.
    fn active(&self, claiming: &Claiming<'_>) -> BTreeMap<BatchId, u64> {
        let now = claiming.now;
        let active = |row: &Row| row.leases.values().filter(|lease| lease.expires > now).count();
        self.wanted(claiming.request).map(|row| (row.batch.id, active(row) as u64)).collect()
    }

    /// Ranges that are leased again like any other.
    fn expired(&self, claiming: &Claiming<'_>, slots: usize) -> Vec<Place> {
        let lost = self.lost_ranges(claiming).filter(|(_, fate)| *fate == Fate::Leased);
        lost.map(|(place, _)| place).take(slots).collect()
    }

    /// Leases a range or a retry that was leased before.
    pub(super) fn lease_again(&mut self, place: Place, claiming: &Claiming<'_>) -> Lease {
        let (fence, expires) = (self.next_fence(claiming.noise), claiming.expires());
        let row = self.batches.get_mut(&place.batch()).expect("it was found a moment ago");
        let worker = claiming.request.worker.0.clone();
        match place {
            Place::Range(batch, hi) => {
                let lease = row.leases.get_mut(&hi).expect("it was found a moment ago");
                lease.suspect |= lease.tries.leases >= crate::suspect::LOST_TWICE;
                let lost = (lease.fence != Fence::NOBODY).then_some(lease.fence);
                lease.tries.begin(lost);
                (lease.fence, lease.expires, lease.worker) = (fence, expires, worker);
                let items = Items::Range(Range::new(lease.lo, hi));
                Lease { batch, fence, items, suspect: lease.suspect }
            }
            Place::Retry(batch, index) => {
                let held = row.exceptions.get_mut(&index).expect("it was found a moment ago");
                held.tries.begin(held.fence);
                (held.fence, held.due, held.worker) = (Some(fence), expires, worker);
                let items = Items::Retries(vec![RetryItem { index, attempts: held.attempts }]);
                Lease { batch, fence, items, suspect: true }
            }
        }
    }

    fn claim_due(&mut self, claiming: &Claiming<'_>, slots: usize) -> Vec<Lease> {
        let (request, now) = (claiming.request, claiming.now);
        let mut groups: Vec<(usize, BatchId, Vec<RetryItem>)> = Vec::new();
        for row in self.wanted(request) {
            let window = (request.lengths.most_retries(row.batch.id) * slots).max(DUE_WINDOW as _);
            let due = row.due(now, window);
            let length = request.lengths.retries_per_lease(row.batch.id, due.len(), slots);
            let chunks = due.chunks(length).take(slots).enumerate();
            groups.extend(chunks.map(|(turn, items)| (turn, row.batch.id, items.to_vec())));
        }
        groups.sort_by_key(|(turn, batch, _)| (*turn, *batch));
        groups.truncate(slots);
        groups.into_iter().map(|(_, batch, items)| self.hold(batch, items, claiming)).collect()
    }

    fn hold(&mut self, batch: BatchId, items: Vec<RetryItem>, claiming: &Claiming<'_>) -> Lease {
        let fence = self.next_fence(claiming.noise);
        let row = self.batches.get_mut(&batch).expect("it was found a moment ago");
        for item in &items {
            let exception = row.exceptions.get_mut(&item.index).expect("it was found a moment ago");
            exception.tries.begin(exception.fence);
            exception.fence = Some(fence);
            exception.due = claiming.expires();
            exception.worker = claiming.request.worker.0.clone();
        }
        Lease { batch, fence, items: Items::Retries(items), suspect: false }
    }

    fn claim_fresh(
        &mut self,
        claiming: &Claiming<'_>,
        slots: usize,
        active: &BTreeMap<BatchId, u64>,
    ) -> Vec<Lease> {
        let request = claiming.request;
        let candidates: Vec<Candidate> = self
            .wanted(request)
            .map(|row| Candidate {
                batch: row.batch.id,
                cursor: row.cursor,
                runs: row.batch.runs,
                active: active[&row.batch.id],
            })
            .collect();
        let mut leases = Vec::new();
        for (batch, range) in share(&candidates, slots, &request.lengths) {
            let fence = self.next_fence(claiming.noise);
            let row = self.batches.get_mut(&batch).expect("it was a candidate");
            row.cursor = range.hi;
            let lease = RangeLease {
                lo: range.lo,
                fence,
                expires: claiming.expires(),
                worker: request.worker.0.clone(),
                tries: Tries { leases: 1, lost: None },
                suspect: false,
            };
            row.leases.insert(range.hi, lease);
            leases.push(Lease { batch, fence, items: Items::Range(range), suspect: false });
        }
        leases
    }

    fn answer(&self, request: &ClaimRequest, leases: Vec<Lease>) -> Claim {
        let ids: BTreeSet<BatchId> = leases.iter().map(|lease| lease.batch).collect();
        let batches: Vec<_> = ids.iter().map(|id| self.batches[id].batch.clone()).collect();
        let hashes: BTreeSet<_> = batches.iter().map(|batch| batch.snapshot).collect();
        let unknown = hashes.into_iter().filter(|hash| !request.known.contains(hash));
        Claim {
            snapshots: unknown.map(|hash| self.snapshots[&hash].clone()).collect(),
            batches,
            leases,
            open: self.wanted(request).count() as u64,
            ..Claim::default()
        }
    }

    /// When something can be claimed next. A suspect that this worker may not have yet is nothing to
    /// come back for: it may once it has settled the one that it holds.
    fn next_due(&self, claiming: &Claiming<'_>) -> Option<Duration> {
        let Claiming { request, now, .. } = *claiming;
        let barred = self.holds_suspect(claiming);
        let dues = self.wanted(request).flat_map(|row| {
            let leases = row.leases.iter().filter(move |(hi, lease)| {
                !barred || lease.expires > now || row.range_fate(**hi, lease) != Fate::Alone
            });
            let retries = row.exceptions.values().filter(move |e| {
                e.is_due(Duration::MAX)
                    && (!barred || e.due > now || row.retry_fate(e) != Fate::Alone)
            });
            leases.map(|(_, lease)| lease.expires).chain(retries.map(|e| e.due))
        });
        dues.min().map(|due| due.saturating_sub(now))
    }

    /// The running batches that the request is for.
    pub(super) fn wanted<'a>(
        &'a self,
        request: &'a ClaimRequest,
    ) -> impl Iterator<Item = &'a Row> + use<'a> {
        self.batches.values().filter(|row| {
            row.state == BatchState::Running
                && request.only.is_none_or(|only| only == row.batch.id)
                && request.workloads.contains(&row.batch.workload)
        })
    }
}

impl Row {
    /// Retries that are due and no suspects: among the `window` that were due first, by index.
    fn due(&self, now: Duration, window: usize) -> Vec<RetryItem> {
        let due = self.exceptions.iter().filter(|(_, exception)| {
            exception.is_due(now) && self.retry_fate(exception) == Fate::Leased
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|(_, exception)| exception.due);
        due.truncate(window);
        due.sort_by_key(|(index, _)| **index);
        let item = |(index, row): (&u64, &super::ExceptionRow)| RetryItem {
            index: *index,
            attempts: row.attempts,
        };
        due.into_iter().map(item).collect()
    }
}

impl Tries {
    /// A lease begins; `lost` is the one before it that came to no end.
    fn begin(&mut self, lost: Option<Fence>) {
        self.leases += 1;
        self.lost = lost.or(self.lost);
    }
}
