//! Tidegate itself, through its public face.

use super::{
    meter::{Cost, Meter},
    report::{Mode, median_by},
    scratch,
};
use anyhow::{Context, ensure};
use std::time::Instant;
use tidegate::{
    Access, Batch, BatchSpec, BatchState, OpenStore, PhaseReport, Stop, Until, Worker,
    WorkerOptions, Workloads, inspect::BatchQuery,
};

/// Runs of the batch whose submission is timed.
const SUBMITTED_RUNS: u64 = 10_000_000;
/// How often; the median counts.
const SUBMISSIONS: usize = 5;
/// Runs of the embedded measurement.
const EMBEDDED_RUNS: u64 = 1_000_000;

/// A batch to carry out in this process.
pub struct Job<'a> {
    pub store: &'a OpenStore,
    pub workloads: &'a Workloads,
    pub workload: &'a str,
    pub runs: u64,
    pub threads: usize,
}

impl Job<'_> {
    /// Submits the batch and works on it until it is closed; all of this counts.
    pub async fn measure(&self, meter: &Meter) -> anyhow::Result<(Mode, Batch)> {
        let statements = self.store.statements();
        let start = meter.start().await?;
        let spec = BatchSpec::new(self.workload, self.runs);
        let batch = tidegate::submit(&**self.store, self.workloads, spec).await?;
        let phases = self.work_on(&batch).await?;
        let cost = meter.stop(start).await?;
        self.check_completed(&batch).await?;

        let statements = self.store.statements() - statements;
        let transactions = cost.transactions.or(Some(calls(&phases)));
        let mode = Mode::new("ranges", self.runs, &cost).doing(statements, transactions);
        Ok((mode.in_phases(phases), batch))
    }

    async fn work_on(&self, batch: &Batch) -> anyhow::Result<PhaseReport> {
        let options = WorkerOptions {
            threads: self.threads,
            only: Some(batch.id),
            until: Until::Idle,
            ..WorkerOptions::new(tidegate::worker_id())
        };
        let worker = Worker::new(self.store.source(), self.workloads.clone(), options);
        Ok(worker.run(Stop::new()).await?.phases)
    }

    async fn check_completed(&self, batch: &Batch) -> anyhow::Result<()> {
        let found = self.store.batches(BatchQuery::one(batch.id)).await?;
        let status = found.first().context("the batch of the bench is gone")?;
        ensure!(
            status.state == BatchState::Completed && status.progress.completed == self.runs,
            "batch {} of the bench ended as {:?} with {:?}: its time means nothing",
            batch.id,
            status.state,
            status.progress
        );
        Ok(())
    }
}

/// Calls that write, where no server counts them: each is one transaction. Two more submit and
/// finalize.
fn calls(phases: &PhaseReport) -> u64 {
    phases.claims + phases.settles + 2
}

/// How long submitting a large batch takes, in milliseconds. The batches are cancelled.
pub async fn submit(store: &OpenStore, workloads: &Workloads) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..SUBMISSIONS {
        let start = Instant::now();
        let spec = BatchSpec::new("noop", SUBMITTED_RUNS);
        let batch = tidegate::submit(&**store, workloads, spec).await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        store.cancel(batch.id).await?;
    }
    median_by(times, |ms| *ms).context("nothing was measured")
}

/// `noop` runs in a new SQLite file, all results kept.
pub async fn embedded(workloads: &Workloads, threads: usize) -> anyhow::Result<Mode> {
    let directory = scratch()?;
    let file = directory.path().join("embedded.db");
    let url = format!("sqlite:{}", file.display());
    let store = tidegate::open(&url, Access::Create).await?;
    let job = Job { store: &store, workloads, workload: "noop", runs: EMBEDDED_RUNS, threads };
    let (mode, _) = job.measure(&Meter::Clock).await?;
    Ok(Mode { name: "embedded", ..mode })
}

impl Mode {
    /// What a stretch of `runs` runs took.
    pub fn new(name: &'static str, runs: u64, cost: &Cost) -> Self {
        let seconds = cost.time.as_secs_f64();
        Self {
            name,
            runs,
            seconds,
            runs_per_second: runs as f64 / seconds,
            wal_bytes_per_run: cost.wal_bytes.map(|bytes| bytes as f64 / runs as f64),
            ..Self::default()
        }
    }
}
