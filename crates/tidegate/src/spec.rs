//! Submitting with the workload's own check of the snapshot.

use std::time::Duration;
use tidegate_core::{
    Batch, InvalidSnapshot, Keep, RetryPolicy, Snapshot, StoreError, Submit, Workloads,
    submit::NewBatch,
};

/// Longest run unless asked otherwise: long enough for anything that is not stuck.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3600);

/// What a batch should be.
#[derive(Clone, Debug)]
pub struct BatchSpec {
    /// The workload's name.
    pub workload: String,
    /// Its input; an empty object unless set.
    pub snapshot: serde_json::Value,
    /// How many runs.
    pub runs: u64,
    /// Same seed, same bits. 1 unless set.
    pub seed: u64,
    /// Which results are stored.
    pub keep: Keep,
    /// What happens to failed runs.
    pub retry: RetryPolicy,
    /// How long one run may take.
    pub timeout: Option<Duration>,
}

impl BatchSpec {
    /// `runs` runs of a workload, with defaults for the rest.
    pub fn new(workload: impl Into<String>, runs: u64) -> Self {
        Self {
            workload: workload.into(),
            snapshot: serde_json::json!({}),
            runs,
            seed: 1,
            keep: Keep::All,
            retry: RetryPolicy::default(),
            timeout: Some(DEFAULT_TIMEOUT),
        }
    }

    /// Checks all that can be checked without a store.
    pub fn check(self, workloads: &Workloads) -> Result<NewBatch, SubmitError> {
        let workload = workloads
            .get(&self.workload)
            .ok_or_else(|| SubmitError::UnknownWorkload(self.workload.clone()))?;
        let snapshot = Snapshot::freeze(&self.snapshot);
        workload.prepare(&snapshot)?;
        let batch = NewBatch {
            workload: self.workload,
            snapshot,
            seed: self.seed,
            runs: self.runs,
            keep: self.keep,
            retry: self.retry,
            timeout: self.timeout,
        };
        batch.check()?;
        Ok(batch)
    }
}

/// Checks a batch and stores it. On an error nothing is stored.
pub async fn submit(
    store: &(impl Submit + ?Sized),
    workloads: &Workloads,
    spec: BatchSpec,
) -> Result<Batch, SubmitError> {
    Ok(store.submit(spec.check(workloads)?).await?)
}

/// Why a batch was not stored.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// No workload has this name.
    #[error("there is no workload `{0}`")]
    UnknownWorkload(String),
    /// The workload refuses the snapshot.
    #[error(transparent)]
    Snapshot(#[from] InvalidSnapshot),
    /// The store refuses the batch.
    #[error(transparent)]
    Store(#[from] StoreError),
}
