//! How batches come in and are steered.

use crate::{
    Batch, BatchId, Keep, RetryPolicy, Snapshot, StoreError,
    error::{Class, Kind},
    limits::{MAX_RUNS, MAX_SNAPSHOT_BYTES},
};
use async_trait::async_trait;
use std::time::Duration;

/// A batch to be.
#[derive(Clone, Debug)]
pub struct NewBatch {
    /// Which workload carries out its runs.
    pub workload: String,
    /// The input that its runs share, already checked by the workload.
    pub snapshot: Snapshot,
    /// Together with a run's index, all the randomness of that run.
    pub seed: u64,
    /// How many runs it has.
    pub runs: u64,
    /// Which results are stored.
    pub keep: Keep,
    /// What happens to a run that fails.
    pub retry: RetryPolicy,
    /// How long one run may take.
    pub timeout: Option<Duration>,
}

impl NewBatch {
    /// Refuses what no store can hold.
    pub fn check(&self) -> Result<(), StoreError> {
        let refuse =
            |message| Err(StoreError::new(Kind::Refused, Class::Permanent, "submit", message));
        if self.runs == 0 || self.runs > MAX_RUNS {
            return refuse(format!("a batch has 1 to {MAX_RUNS} runs, not {}", self.runs));
        }
        if self.retry.max_attempts == 0 {
            return refuse("a run needs at least one attempt".to_owned());
        }
        let size = self.snapshot.text().len();
        if size > MAX_SNAPSHOT_BYTES {
            return refuse(format!(
                "the snapshot has {size} bytes; {MAX_SNAPSHOT_BYTES} is the most"
            ));
        }
        Ok(())
    }

    /// The batch as it is stored under `id`.
    pub fn into_batch(self, id: BatchId) -> Batch {
        Batch {
            id,
            workload: self.workload,
            snapshot: self.snapshot.hash(),
            seed: self.seed,
            runs: self.runs,
            keep: self.keep,
            retry: self.retry,
            timeout: self.timeout,
        }
    }
}

/// The one batch of its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once {
    /// Which.
    pub id: BatchId,
    /// Whether it was there before.
    pub found: bool,
}

/// A page of dead runs that are due again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retried {
    /// How many.
    pub runs: u64,
    /// Where the next page begins; `None`: there is none.
    pub next: Option<u64>,
}

/// Writes batches and steers them.
#[async_trait]
pub trait Submit: Send + Sync {
    /// Stores a batch: one transaction, one row, and one for its snapshot unless that is stored
    /// already. Afterwards workers can claim it. On an error nothing is stored, or the outcome is
    /// unknown if the error says so.
    async fn submit(&self, batch: NewBatch) -> Result<Batch, StoreError>;

    /// Stores a batch unless there is one of the same workload: one that is running or, unless it is to
    /// be done `again`, the last one that was completed. Of those who ask at the same time, one stores and
    /// all get the same.
    async fn submit_once(&self, batch: NewBatch, again: bool) -> Result<Once, StoreError>;

    /// Stops a running batch. Afterwards nobody can claim or settle anything of it; what was settled
    /// before stays. Refused if the batch is not running.
    async fn cancel(&self, batch: BatchId) -> Result<(), StoreError>;

    /// Makes dead runs of a batch due at once, with no attempts used, and the batch running again: a
    /// page of them, from run `from` on. Afterwards they are durable as such, and workers may have
    /// them. Whoever asks for all begins with run 0 and goes on with what the answer says; who stops
    /// halfway begins anew. Refused if the batch was cancelled; a batch without dead runs stays as it
    /// is.
    async fn retry(&self, batch: BatchId, from: u64) -> Result<Retried, StoreError>;
}
