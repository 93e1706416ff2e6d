//! Reading for people.

use crate::{
    Aggregates, Batch, BatchId, BatchState, Exception, ExceptionState, Page, Snapshot,
    SnapshotHash, StoreError,
};
use async_trait::async_trait;
use serde::Serialize;

/// Looks at batches. Reads only; never waits for workers.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// Batches that match, newest first.
    async fn batches(&self, query: BatchQuery) -> Result<Vec<BatchStatus>, StoreError>;

    /// A batch's aggregates so far; empty if nothing is settled yet.
    async fn aggregates(&self, batch: BatchId) -> Result<Aggregates, StoreError>;

    /// A batch's exceptions, by index.
    async fn exceptions(&self, query: ExceptionQuery) -> Result<Vec<Exception>, StoreError>;

    /// A batch's pages, by their lowest index.
    async fn pages(&self, query: PageQuery) -> Result<Vec<Page>, StoreError>;

    /// A snapshot by its address.
    async fn snapshot(&self, hash: SnapshotHash) -> Result<Option<Snapshot>, StoreError>;
}

/// Which batches.
#[derive(Clone, Debug)]
pub struct BatchQuery {
    /// Only this one.
    pub id: Option<BatchId>,
    /// Only those in this state.
    pub state: Option<BatchState>,
    /// Only those older than this one.
    pub before: Option<BatchId>,
    /// At most this many.
    pub limit: usize,
}

impl BatchQuery {
    /// One batch.
    pub fn one(id: BatchId) -> Self {
        Self { id: Some(id), ..Self::newest(1) }
    }

    /// The newest batches.
    pub fn newest(limit: usize) -> Self {
        Self { id: None, state: None, before: None, limit }
    }
}

/// Which exceptions.
#[derive(Clone, Debug)]
pub struct ExceptionQuery {
    /// Of this batch.
    pub batch: BatchId,
    /// Only those in this state.
    pub state: Option<ExceptionState>,
    /// From this index on.
    pub from: u64,
    /// At most this many.
    pub limit: usize,
}

/// Which pages.
#[derive(Clone, Debug)]
pub struct PageQuery {
    /// Of this batch.
    pub batch: BatchId,
    /// Only those that begin at this index or later.
    pub from: u64,
    /// Only those that end beyond this index: with results of retried runs, a page that begins early
    /// may hold a late one.
    pub beyond: u64,
    /// At most this many.
    pub limit: usize,
}

impl PageQuery {
    /// A batch's first pages.
    pub fn first(batch: BatchId, limit: usize) -> Self {
        Self { batch, from: 0, beyond: 0, limit }
    }
}

/// A batch and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BatchStatus {
    /// What was submitted.
    #[serde(flatten)]
    pub batch: Batch,
    /// Where it is in its life.
    pub state: BatchState,
    /// What became of its runs so far.
    pub progress: Progress,
    /// When it was submitted: milliseconds since 1970, by the store's clock.
    pub created_ms: i64,
    /// When it was closed or cancelled.
    pub finished_ms: Option<i64>,
}

/// What became of the runs of a batch; the five numbers add up to all of them. Computed from
/// intervals and exceptions: no counter is kept anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Succeeded and settled.
    pub completed: u64,
    /// Given up.
    pub dead: u64,
    /// Failed, and tried again later or right now.
    pub retrying: u64,
    /// Leased by somebody, and not settled.
    pub leased: u64,
    /// Free to be leased: never leased, given back, or left by a worker whose lease has expired.
    pub untouched: u64,
}

impl Progress {
    /// From what stores keep: the number of runs, the first index never leased, the total length of
    /// the leased ranges and of those whose lease has ended, and the exceptions.
    pub fn derive(
        runs: u64,
        cursor: u64,
        leased: u64,
        ended: u64,
        retrying: u64,
        dead: u64,
    ) -> Self {
        Self {
            completed: cursor - leased - ended - retrying - dead,
            dead,
            retrying,
            leased,
            untouched: runs - cursor + ended,
        }
    }
}
