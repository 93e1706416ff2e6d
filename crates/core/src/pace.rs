//! What outlives a process about the pace of a sink: for people, and for the next process.

use crate::{BatchId, StoreError, WorkerId};
use async_trait::async_trait;
use std::time::Duration;

/// Keeps one note per worker and batch.
#[async_trait]
pub trait PaceBook: Send + Sync {
    /// Writes a note over the one that the same worker wrote about the same batch before.
    async fn note_pace(&self, note: PaceNote) -> Result<(), StoreError>;

    /// Notes that match, the newest first.
    async fn paces(&self, query: PaceQuery) -> Result<Vec<NotedPace>, StoreError>;
}

/// What a worker knows about the pace of its sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaceNote {
    /// The sink: the same for all that share its limits.
    pub sink: String,
    /// What is delivered to it.
    pub batch: BatchId,
    /// Who delivers.
    pub worker: WorkerId,
    /// JSON.
    pub body: String,
}

/// A note, and how old it is by the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedPace {
    /// What was written.
    pub note: PaceNote,
    /// How long ago.
    pub age: Duration,
}

/// Which notes.
#[derive(Clone, Debug, Default)]
pub struct PaceQuery {
    /// Only about this batch.
    pub batch: Option<BatchId>,
    /// Only about this sink.
    pub sink: Option<String>,
    /// Only those written within this time.
    pub within: Option<Duration>,
    /// At most this many.
    pub limit: usize,
}
