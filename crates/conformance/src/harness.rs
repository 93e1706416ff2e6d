//! The bench on which cases work: a store, with the requests that most cases need.
//!
//! Cases fail by panicking, so a failed call panics here.

use crate::{
    fixture::Reopen,
    work::{Work, totals},
};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tidegate_core::{
    Aggregates, Batch, BatchId, BatchState, Exception, Fence, Keep, Lease, Page, RetryPolicy,
    Snapshot, Store, WorkerId,
    claim::{Claim, ClaimRequest, Length, Lengths},
    inspect::{BatchQuery, BatchStatus, ExceptionQuery, PageQuery, Progress},
    settle::{AccumulatorId, Settled, Settlement},
    source::{Capabilities, Finalized, Renewal},
    submit::NewBatch,
};
use tokio::task::JoinSet;

/// A lease or a delay of this length has passed at once.
pub(crate) const AT_ONCE: Duration = Duration::ZERO;
/// A lease or a delay of this length does not pass while a case runs.
pub(crate) const LATER: Duration = Duration::from_secs(3600);
/// The workload of all batches, unless a case says otherwise.
pub(crate) const WORKLOAD: &str = "conformance";
/// A batch that no store has.
pub(crate) const NO_BATCH: BatchId = BatchId(i64::MAX);

/// A store to work on. Clones share it.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    reopen: Option<Reopen>,
    accumulators: Arc<AtomicI64>,
}

/// All that can be seen of a batch, apart from times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Observed {
    pub(crate) batch: Batch,
    pub(crate) state: BatchState,
    pub(crate) progress: Progress,
    pub(crate) finished: bool,
    pub(crate) exceptions: Vec<Exception>,
    pub(crate) pages: Vec<Page>,
    pub(crate) aggregates: Aggregates,
}

/// A batch of this many runs.
pub(crate) fn new_batch(runs: u64) -> NewBatch {
    NewBatch {
        workload: WORKLOAD.to_owned(),
        snapshot: snapshot(r#"{"of":"the suite"}"#),
        seed: 1,
        runs,
        keep: Keep::All,
        retry: RetryPolicy::default(),
        timeout: None,
    }
}

/// The snapshot with this text.
pub(crate) fn snapshot(text: &str) -> Snapshot {
    Snapshot::from_canonical(text.to_owned())
}

/// Asks for leases of exactly `length` runs that last.
pub(crate) fn ask(slots: usize, length: u64) -> ClaimRequest {
    let length = Length { most: length, least: length };
    ClaimRequest {
        worker: WorkerId("a worker".to_owned()),
        slots,
        lengths: Lengths { unknown: length, known: Vec::new() },
        workloads: vec![WORKLOAD.to_owned()],
        only: None,
        lease: LATER,
        known: Vec::new(),
    }
}

/// Carries out `count` futures at the same time.
pub(crate) async fn at_once<T, F>(count: usize, make: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for task in (0..count).map(make) {
        tasks.spawn(task);
    }
    tasks.join_all().await
}

impl Bench {
    pub(crate) fn new(store: Arc<dyn Store>, reopen: Option<Reopen>) -> Self {
        Self { store, reopen, accumulators: Arc::new(AtomicI64::new(1)) }
    }

    /// Another handle to the same content.
    pub(crate) async fn reopen(&self) -> Self {
        let reopen = self.reopen.as_ref().expect("the fixture of a durable store can reopen it");
        Self { store: reopen().await, ..self.clone() }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    pub(crate) async fn submit(&self, runs: u64) -> BatchId {
        self.submit_batch(new_batch(runs)).await.id
    }

    pub(crate) async fn submit_batch(&self, batch: NewBatch) -> Batch {
        self.store.submit(batch).await.expect("submit")
    }

    pub(crate) async fn ask(&self, request: ClaimRequest) -> Claim {
        self.store.claim(request).await.expect("claim")
    }

    /// Leases that last.
    pub(crate) async fn claim(&self, slots: usize, length: u64) -> Vec<Lease> {
        self.ask(ask(slots, length)).await.leases
    }

    /// Leases that are expired from the start.
    pub(crate) async fn claim_expired(&self, slots: usize, length: u64) -> Vec<Lease> {
        self.ask(ClaimRequest { lease: AT_ONCE, ..ask(slots, length) }).await.leases
    }

    /// The only lease that there is, of at most `length` runs.
    pub(crate) async fn claim_one(&self, length: u64) -> Lease {
        let leases = self.claim(1, length).await;
        let [lease] = leases.try_into().expect("there is work to claim");
        lease
    }

    /// The settlement of a worker that has settled nothing before.
    pub(crate) fn settlement(&self, works: impl IntoIterator<Item = Work>) -> Settlement {
        let accumulator = AccumulatorId(self.accumulators.fetch_add(1, Ordering::Relaxed));
        let parts: Vec<_> = works.into_iter().map(Work::part).collect();
        Settlement { totals: totals(&parts, accumulator), parts, lease: LATER }
    }

    pub(crate) async fn send(&self, settlement: Settlement) -> Settled {
        self.store.settle(settlement).await.expect("settle")
    }

    pub(crate) async fn settle(&self, works: impl IntoIterator<Item = Work>) -> Settled {
        self.send(self.settlement(works)).await
    }

    /// Settles what must be held.
    pub(crate) async fn apply(&self, works: impl IntoIterator<Item = Work>) {
        assert_eq!(self.settle(works).await, Settled::Applied);
    }

    /// Claims and settles everything that can be claimed, as done.
    pub(crate) async fn work_off(&self, length: u64) {
        loop {
            let leases = self.claim(16, length).await;
            if leases.is_empty() {
                return;
            }
            self.apply(leases.iter().map(Work::all)).await;
        }
    }

    pub(crate) async fn renew(&self, leases: &[Lease], lease: Duration) -> Vec<Fence> {
        let renewal = Renewal { leases: leases.to_vec(), lease };
        self.store.renew(renewal).await.expect("renew")
    }

    pub(crate) async fn give_back(&self, leases: &[Lease]) {
        self.store.give_back(leases.to_vec()).await.expect("give back");
    }

    pub(crate) async fn finalize(&self, batches: &[BatchId]) -> Vec<Finalized> {
        self.store.finalize(batches.to_vec()).await.expect("finalize")
    }

    pub(crate) async fn list(&self, query: BatchQuery) -> Vec<BatchStatus> {
        self.store.batches(query).await.expect("list batches")
    }

    pub(crate) async fn status(&self, batch: BatchId) -> BatchStatus {
        let [status] = self.list(BatchQuery::one(batch)).await.try_into().expect("one batch");
        status
    }

    pub(crate) async fn state(&self, batch: BatchId) -> BatchState {
        self.status(batch).await.state
    }

    pub(crate) async fn progress(&self, batch: BatchId) -> Progress {
        self.status(batch).await.progress
    }

    pub(crate) async fn exceptions(&self, batch: BatchId) -> Vec<Exception> {
        let query = ExceptionQuery { batch, state: None, from: 0, limit: 10_000 };
        self.store.exceptions(query).await.expect("list exceptions")
    }

    pub(crate) async fn pages(&self, batch: BatchId) -> Vec<Page> {
        let query = PageQuery::first(batch, 10_000);
        self.store.pages(query).await.expect("list pages")
    }

    pub(crate) async fn aggregates(&self, batch: BatchId) -> Aggregates {
        self.store.aggregates(batch).await.expect("read aggregates")
    }

    pub(crate) async fn observe(&self, batch: BatchId) -> Observed {
        let status = self.status(batch).await;
        Observed {
            batch: status.batch,
            state: status.state,
            progress: status.progress,
            finished: status.finished_ms.is_some(),
            exceptions: self.exceptions(batch).await,
            pages: self.pages(batch).await,
            aggregates: self.aggregates(batch).await,
        }
    }
}
