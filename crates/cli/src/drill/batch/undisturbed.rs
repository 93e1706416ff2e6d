//! The same batch, carried out in this process without faults.

use super::watch::WORKLOAD;
use anyhow::{Context, Result};
use serde_json::json;
use tidegate::{
    Access, Aggregates, BatchSpec, Stop, Until, Worker, WorkerOptions, open, submit, worker_id,
    workloads,
};

/// The aggregates, and with them the digest, of a batch in which nothing fails: what fails and is tried again yields
/// the same.
pub async fn aggregates(seed: u64, runs: u64) -> Result<Aggregates> {
    let store = open("memory:", Access::Create).await?;
    let workloads = workloads::builtin();
    let snapshot = json!({ "fail": 0.0 });
    let spec = BatchSpec { seed, snapshot, ..BatchSpec::new(WORKLOAD, runs) };
    let batch = submit(&*store, &workloads, spec).await.context("submit the undisturbed batch")?;
    let options = WorkerOptions { until: Until::Idle, ..WorkerOptions::new(worker_id()) };
    Worker::new(store.source(), workloads, options).run(Stop::new()).await?;
    Ok(store.aggregates(batch.id).await?)
}
