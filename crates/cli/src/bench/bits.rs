//! The same bits, whoever carries a batch out: other stores, numbers of processes, lengths of ranges,
//! and workers that are killed.

use super::{note, report::Way, scratch};
use crate::snapshot;
use anyhow::{Context, ensure};
use std::{
    process::Stdio,
    time::{Duration, Instant},
};
use tidegate::{
    Access, Aggregates, Batch, BatchSpec, BatchState, OpenStore, Stop, Until, Worker,
    WorkerOptions, Workloads, inspect::BatchQuery,
};
use tokio::{
    process::{Child, Command},
    time::sleep,
};

const WORKLOAD: &str = "bingo";
const RUNS: u64 = 20_000;
/// Enough for several kills.
const RUNS_UNDER_FIRE: u64 = 200_000;
const KILL_EVERY: Duration = Duration::from_secs(1);
/// Short, so that what a killed worker held is not waited for long.
const LEASE: Duration = Duration::from_secs(2);
/// Far above what any batch takes.
const DEADLINE: Duration = Duration::from_secs(300);

/// Carries out the same batch in many ways, on the store at `url` and on others.
pub async fn measure(
    url: &str,
    store: &OpenStore,
    workloads: &Workloads,
) -> anyhow::Result<Vec<Way>> {
    note("bits");
    let directory = scratch()?;
    let file = format!("sqlite:{}", directory.path().join("bits.db").display());
    let calm = here("memory:", workloads, RUNS, None).await?;
    let mut ways = Vec::new();
    for place in ["memory:", &file] {
        for length in [1, 100, 10_000] {
            let found = here(place, workloads, RUNS, Some(length)).await?;
            let kind = place.split(':').next().unwrap_or_default();
            ways.push(Way::new(format!("{kind}, ranges of {length}"), &calm, &found));
        }
    }
    for (processes, length) in
        [(1, None), (2, None), (5, None), (2, Some(1)), (2, Some(100)), (2, Some(10_000))]
    {
        let (found, _) =
            Crew { url, store, processes, length, kill: false }.work(workloads).await?;
        let length = length.map_or(String::new(), |length| format!(", ranges of {length}"));
        ways.push(Way::new(format!("{processes} processes{length}"), &calm, &found));
    }
    let calm = here("memory:", workloads, RUNS_UNDER_FIRE, None).await?;
    let crew = Crew { url, store, processes: 2, length: None, kill: true };
    let (found, kills) = crew.work(workloads).await?;
    ways.push(Way::new(format!("2 processes, {kills} killed by SIGKILL"), &calm, &found));
    Ok(ways)
}

/// Carries a batch out in this process.
async fn here(
    url: &str,
    workloads: &Workloads,
    runs: u64,
    range_length: Option<u64>,
) -> anyhow::Result<Aggregates> {
    let store = tidegate::open(url, Access::Create).await?;
    let batch = submit(&store, workloads, runs).await?;
    let options = WorkerOptions {
        range_length,
        only: Some(batch.id),
        until: Until::Idle,
        ..WorkerOptions::new(tidegate::worker_id())
    };
    Worker::new(store.source(), workloads.clone(), options).run(Stop::new()).await?;
    aggregates(&store, &batch).await
}

async fn submit(store: &OpenStore, workloads: &Workloads, runs: u64) -> anyhow::Result<Batch> {
    let workload = workloads.get(WORKLOAD).context("its workload is built in")?;
    let mut spec = BatchSpec::new(WORKLOAD, runs);
    spec.snapshot = snapshot::example(&*workload)?;
    Ok(tidegate::submit(&**store, workloads, spec).await?)
}

async fn aggregates(store: &OpenStore, batch: &Batch) -> anyhow::Result<Aggregates> {
    let aggregates = store.aggregates(batch.id).await?;
    ensure!(aggregates.runs == batch.runs, "batch {} of the bench is not complete", batch.id);
    Ok(aggregates)
}

/// Worker processes of one thread each.
struct Crew<'a> {
    url: &'a str,
    store: &'a OpenStore,
    processes: usize,
    length: Option<u64>,
    kill: bool,
}

impl Crew<'_> {
    /// Carries a batch out. Returns its aggregates, and how many processes were killed.
    async fn work(&self, workloads: &Workloads) -> anyhow::Result<(Aggregates, usize)> {
        let runs = if self.kill { RUNS_UNDER_FIRE } else { RUNS };
        let batch = submit(self.store, workloads, runs).await?;
        let mut workers = Vec::new();
        for _ in 0..self.processes {
            workers.push(self.start(&batch)?);
        }
        let mut kills = 0;
        while self.kill && self.is_running_after(&batch, KILL_EVERY).await? {
            let victim = kills % workers.len();
            workers[victim].kill().await.context("kill a worker of the bench")?;
            workers[victim] = self.start(&batch)?;
            kills += 1;
        }
        for worker in &mut workers {
            let ended = tokio::time::timeout(DEADLINE, worker.wait()).await;
            let status = ended.context("a worker of the bench does not end")??;
            ensure!(status.success(), "a worker of the bench ended with {status}");
        }
        Ok((aggregates(self.store, &batch).await?, kills))
    }

    async fn is_running_after(&self, batch: &Batch, time: Duration) -> anyhow::Result<bool> {
        let start = Instant::now();
        while start.elapsed() < time {
            let found = self.store.batches(BatchQuery::one(batch.id)).await?;
            if found.first().is_none_or(|status| status.state != BatchState::Running) {
                return Ok(false);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Ok(true)
    }

    fn start(&self, batch: &Batch) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("find this program to start workers")?;
        let mut command = Command::new(program);
        command.args(["worker", "--until-idle", "--threads", "1", "--quiet"]);
        command.args(["--batch", &batch.id.to_string(), "--lease", &format!("{LEASE:?}")]);
        if let Some(length) = self.length {
            command.args(["--range-length", &length.to_string()]);
        }
        command.env("TIDEGATE_STORE", self.url).stdin(Stdio::null()).stdout(Stdio::null());
        command.kill_on_drop(true).spawn().context("start a worker of the bench")
    }
}
