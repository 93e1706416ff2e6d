//! Leases: expired ones first, then due retries, then fresh ranges.

use super::{Content, RangeLease, Row};
use crate::{
    BatchId, BatchState, Items, Lease, Range, RetryItem,
    claim::{Candidate, Claim, ClaimRequest, share},
    limits::MAX_LEASES_PER_CLAIM,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

impl Content {
    pub(super) fn claim(&mut self, request: ClaimRequest, now: Duration) -> Claim {
        let slots = request.slots.min(MAX_LEASES_PER_CLAIM);
        let mut active = self.active(&request, now);
        let mut leases = self.claim_expired(&request, slots, now);
        for lease in &leases {
            *active.entry(lease.batch).or_default() += 1;
        }
        leases.extend(self.claim_due(&request, slots - leases.len(), now));
        leases.extend(self.claim_fresh(&request, slots - leases.len(), &active, now));
        self.answer(&request, leases, now)
    }

    /// How many ranges of each batch are leased and not expired.
    fn active(&self, request: &ClaimRequest, now: Duration) -> BTreeMap<BatchId, u64> {
        let active = |row: &Row| row.leases.values().filter(|lease| lease.expires > now).count();
        self.wanted(request).map(|row| (row.batch.id, active(row) as u64)).collect()
    }

    fn claim_expired(&mut self, request: &ClaimRequest, slots: usize, now: Duration) -> Vec<Lease> {
        let expired: Vec<(BatchId, u64)> = self
            .wanted(request)
            .flat_map(|row| row.leases.iter().map(|(hi, lease)| (row.batch.id, *hi, lease.expires)))
            .filter(|(_, _, expires)| *expires <= now)
            .map(|(batch, hi, _)| (batch, hi))
            .take(slots)
            .collect();
        let mut leases = Vec::new();
        for (batch, hi) in expired {
            let fence = self.next_fence();
            let row = self.batches.get_mut(&batch).expect("it was found a moment ago");
            let lease = row.leases.get_mut(&hi).expect("it was found a moment ago");
            lease.fence = fence;
            lease.expires = now + request.lease;
            leases.push(Lease { batch, fence, items: Items::Range(Range::new(lease.lo, hi)) });
        }
        leases
    }

    fn claim_due(&mut self, request: &ClaimRequest, slots: usize, now: Duration) -> Vec<Lease> {
        let mut groups: Vec<(usize, BatchId, Vec<RetryItem>)> = Vec::new();
        for row in self.wanted(request) {
            let due: Vec<RetryItem> = row
                .exceptions
                .iter()
                .filter(|(_, exception)| exception.is_due(now))
                .map(|(index, exception)| RetryItem { index: *index, attempts: exception.attempts })
                .collect();
            let length = request.lengths.retries_per_lease(row.batch.id, due.len(), slots);
            let chunks = due.chunks(length).take(slots).enumerate();
            groups.extend(chunks.map(|(turn, items)| (turn, row.batch.id, items.to_vec())));
        }
        groups.sort_by_key(|(turn, batch, _)| (*turn, *batch));
        groups.truncate(slots);
        groups
            .into_iter()
            .map(|(_, batch, items)| self.hold(batch, items, now + request.lease))
            .collect()
    }

    fn hold(&mut self, batch: BatchId, items: Vec<RetryItem>, expires: Duration) -> Lease {
        let fence = self.next_fence();
        let row = self.batches.get_mut(&batch).expect("it was found a moment ago");
        for item in &items {
            let exception = row.exceptions.get_mut(&item.index).expect("it was found a moment ago");
            exception.fence = Some(fence);
            exception.due = expires;
        }
        Lease { batch, fence, items: Items::Retries(items) }
    }

    fn claim_fresh(
        &mut self,
        request: &ClaimRequest,
        slots: usize,
        active: &BTreeMap<BatchId, u64>,
        now: Duration,
    ) -> Vec<Lease> {
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
            let fence = self.next_fence();
            let row = self.batches.get_mut(&batch).expect("it was a candidate");
            row.cursor = range.hi;
            let lease = RangeLease { lo: range.lo, fence, expires: now + request.lease };
            row.leases.insert(range.hi, lease);
            leases.push(Lease { batch, fence, items: Items::Range(range) });
        }
        leases
    }

    fn answer(&self, request: &ClaimRequest, leases: Vec<Lease>, now: Duration) -> Claim {
        let ids: BTreeSet<BatchId> = leases.iter().map(|lease| lease.batch).collect();
        let batches: Vec<_> = ids.iter().map(|id| self.batches[id].batch.clone()).collect();
        let hashes: BTreeSet<_> = batches.iter().map(|batch| batch.snapshot).collect();
        let unknown = hashes.into_iter().filter(|hash| !request.known.contains(hash));
        let dues = self.wanted(request).flat_map(|row| {
            let leases = row.leases.values().map(|lease| lease.expires);
            let retries = row.exceptions.values().filter(|e| e.is_due(Duration::MAX));
            leases.chain(retries.map(|exception| exception.due))
        });
        Claim {
            snapshots: unknown.map(|hash| self.snapshots[&hash].clone()).collect(),
            batches,
            leases,
            settled: self
                .wanted(request)
                .filter(|row| row.is_settled())
                .map(|r| r.batch.id)
                .collect(),
            open: self.wanted(request).count() as u64,
            next_due: dues.min().map(|due| due.saturating_sub(now)),
        }
    }

    /// The running batches that the request is for.
    fn wanted<'a>(&'a self, request: &'a ClaimRequest) -> impl Iterator<Item = &'a Row> {
        self.batches.values().filter(|row| {
            row.state == BatchState::Running
                && request.only.is_none_or(|only| only == row.batch.id)
                && request.workloads.contains(&row.batch.workload)
        })
    }
}
