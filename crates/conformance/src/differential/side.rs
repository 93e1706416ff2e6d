//! One of the two stores, spoken to in names: ids and fences are counted from zero, in the order in
//! which they came up, so that requests and answers of both sides can be compared.

use crate::harness::{Bench, LATER, Observed};
use std::{collections::BTreeSet, time::Duration};
use tidegate_core::{
    Batch, BatchId, Fence, Items, Kind, Lease, Snapshot, StoreError,
    claim::{Claim, ClaimRequest},
    settle::{Settled, Settlement},
    source::{Finalized, Renewal},
    submit::{NewBatch, Retried},
};

type Called<T> = Result<T, StoreError>;

pub(super) struct Side {
    bench: Bench,
    batches: Vec<BatchId>,
    fences: Vec<Fence>,
    /// Batch and end of every range that was ever leased.
    leased: BTreeSet<(BatchId, u64)>,
}

/// An answer to a claim, in names, and in an order of its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) leases: Vec<Lease>,
    batches: Vec<Batch>,
    snapshots: Vec<Snapshot>,
    settled: Vec<BatchId>,
    open: u64,
    next_due: Option<Due>,
    /// Expired leases came first, then due retries, then fresh ranges.
    in_order: bool,
    /// Every fence was above all that were handed out before.
    fences_grow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Due {
    Soon,
    Later,
}

impl Due {
    fn of(due: Duration) -> Self {
        if due < LATER / 2 { Due::Soon } else { Due::Later }
    }
}

impl Side {
    pub(super) fn new(bench: Bench) -> Self {
        Self { bench, batches: Vec::new(), fences: Vec::new(), leased: BTreeSet::new() }
    }

    fn id(&self, name: BatchId) -> BatchId {
        self.batches[name.0 as usize]
    }

    fn name(&self, id: BatchId) -> BatchId {
        let place = self.batches.iter().position(|batch| *batch == id);
        BatchId(place.expect("a store answers with batches of this sequence only") as i64)
    }

    fn named(&self, batch: Batch) -> Batch {
        Batch { id: self.name(batch.id), ..batch }
    }

    fn named_fences(&self, fences: Vec<Fence>) -> Vec<Fence> {
        let place = |fence| self.fences.iter().position(|known| *known == fence);
        let name = |fence| Fence(place(fence).expect("it was handed out before") as i64);
        let mut named: Vec<Fence> = fences.into_iter().map(name).collect();
        named.sort_unstable();
        named
    }

    fn real(&self, lease: Lease) -> Lease {
        let fence = self.fences[lease.fence.0 as usize];
        Lease { batch: self.id(lease.batch), fence, ..lease }
    }

    pub(super) async fn submit(&mut self, batch: NewBatch) -> Called<Batch> {
        let batch = self.bench.store.submit(batch).await?;
        self.batches.push(batch.id);
        Ok(self.named(batch))
    }

    pub(super) async fn claim(&mut self, mut request: ClaimRequest) -> Called<Answer> {
        request.only = request.only.map(|name| self.id(name));
        request.lengths.known.iter_mut().for_each(|(batch, _)| *batch = self.id(*batch));
        let claim = self.bench.store.claim(request).await?;
        Ok(self.answer(claim))
    }

    fn answer(&mut self, claim: Claim) -> Answer {
        let in_order = claim.leases.is_sorted_by_key(|lease| self.class(lease));
        let newest = self.fences.iter().max().copied().unwrap_or(Fence::NOBODY);
        let fences_grow = claim.leases.iter().all(|lease| lease.fence > newest);
        let mut batches: Vec<_> = claim.batches.into_iter().map(|b| self.named(b)).collect();
        batches.sort_by_key(|batch| batch.id);
        let mut snapshots = claim.snapshots;
        snapshots.sort_by_key(Snapshot::hash);
        let mut settled: Vec<_> = claim.settled.into_iter().map(|id| self.name(id)).collect();
        settled.sort_unstable();
        let leases = self.named_leases(claim.leases);
        let (open, next_due) = (claim.open, claim.next_due.map(Due::of));
        Answer { leases, batches, snapshots, settled, open, next_due, in_order, fences_grow }
    }

    fn class(&self, lease: &Lease) -> u8 {
        match &lease.items {
            Items::Range(range) if self.leased.contains(&(lease.batch, range.hi)) => 0,
            Items::Retries(_) => 1,
            Items::Range(_) => 2,
        }
    }

    fn named_leases(&mut self, mut leases: Vec<Lease>) -> Vec<Lease> {
        leases.sort_by_key(|lease| (lease.batch, lease.items.nth(0).index));
        let mut named = Vec::new();
        for lease in leases {
            if let Items::Range(range) = &lease.items {
                self.leased.insert((lease.batch, range.hi));
            }
            let fence = Fence(self.fences.len() as i64);
            self.fences.push(lease.fence);
            named.push(Lease { batch: self.name(lease.batch), fence, ..lease });
        }
        named
    }

    pub(super) async fn settle(&self, mut settlement: Settlement) -> Called<Settled> {
        for part in &mut settlement.parts {
            part.batch = self.id(part.batch);
            part.fence = self.fences[part.fence.0 as usize];
        }
        settlement.totals.iter_mut().for_each(|total| total.batch = self.id(total.batch));
        Ok(match self.bench.store.settle(settlement).await? {
            Settled::Late(fences) => Settled::Late(self.named_fences(fences)),
            Settled::Applied => Settled::Applied,
            Settled::Forgotten(batches) => {
                Settled::Forgotten(batches.into_iter().map(|id| self.name(id)).collect())
            }
        })
    }

    pub(super) async fn renew(&self, leases: Vec<Lease>, lease: Duration) -> Called<Vec<Fence>> {
        let leases = leases.into_iter().map(|lease| self.real(lease)).collect();
        let lost = self.bench.store.renew(Renewal { leases, lease }).await?;
        Ok(self.named_fences(lost))
    }

    pub(super) async fn give_back(&self, leases: Vec<Lease>) -> Called<()> {
        let leases = leases.into_iter().map(|lease| self.real(lease)).collect();
        self.bench.store.give_back(leases).await
    }

    pub(super) async fn finalize(&self, names: Vec<BatchId>) -> Called<Vec<Finalized>> {
        let ids = names.into_iter().map(|name| self.id(name)).collect();
        let mut closed = self.bench.store.finalize(ids).await?;
        closed.iter_mut().for_each(|closed| closed.batch = self.name(closed.batch));
        closed.sort_by_key(|closed| closed.batch);
        Ok(closed)
    }

    /// What is refused must be refused by both.
    pub(super) async fn cancel(&self, name: BatchId) -> Called<Result<(), Kind>> {
        Ok(self.bench.store.cancel(self.id(name)).await.map_err(|error| error.kind()))
    }

    pub(super) async fn retry(&self, name: BatchId, from: u64) -> Called<Result<Retried, Kind>> {
        Ok(self.bench.store.retry(self.id(name), from).await.map_err(|error| error.kind()))
    }

    pub(super) async fn observe(&self, name: BatchId) -> Called<Observed> {
        let mut seen = self.bench.observe(self.id(name)).await;
        seen.batch = self.named(seen.batch);
        seen.exceptions.iter_mut().for_each(|exception| exception.batch = name);
        Ok(seen)
    }
}
