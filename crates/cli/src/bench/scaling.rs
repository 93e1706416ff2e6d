//! What a second and a third worker process add.
//!
//! The processes are up and at work before the clock starts: what is timed, by the store's clock, is
//! the life of one batch, from its submission to its closing.

use super::{
    meter::{Meter, connect},
    note,
    report::Scaled,
};
use anyhow::{Context, bail, ensure};
use std::{
    process::Stdio,
    time::{Duration, Instant},
};
use tidegate::{
    BatchSpec, BatchState, OpenStore,
    inspect::{BatchQuery, BatchStatus},
    workloads::builtin,
};
use tokio::{
    process::{Child, Command},
    time::sleep,
};

/// What is measured: runs of a length, with one process and with several.
struct Course {
    workload: &'static str,
    ms: f64,
    runs: u64,
    processes: usize,
    target: f64,
}

const COURSES: [Course; 2] = [
    Course { workload: "sleep", ms: 5.0, runs: 3_000, processes: 3, target: 2.8 },
    Course { workload: "spin", ms: 1.0, runs: 6_000, processes: 2, target: 1.8 },
];

/// Work for each process before the clock starts. Longer than an idle worker pauses between two
/// looks for work, so that all of them are wide awake then.
const WARM_UP: Duration = Duration::from_millis(1_500);
/// How often a batch is looked at while it runs: rarely, to leave the cores to the workers.
const LOOK: Duration = Duration::from_millis(100);
/// A worker process that is not connected after this time will not be.
const START_DEADLINE: Duration = Duration::from_secs(20);
/// Far above what any course takes.
const COURSE_DEADLINE: Duration = Duration::from_secs(300);

/// Connections tell whose they are by this name and a number.
const NAME: &str = "tidegate-bench-worker-";
const CONNECTED: &str = "
    select count(distinct application_name) from pg_stat_activity
    where application_name like $1 || '%' and datname = current_database()";

/// Runs all courses.
pub async fn measure(url: &str, store: &OpenStore, meter: &Meter) -> anyhow::Result<Vec<Scaled>> {
    let mut scaled = Vec::new();
    for course in &COURSES {
        note(&format!("scaling of {}", course.workload));
        let one = course.seconds(url, store, meter, 1).await?;
        let many = course.seconds(url, store, meter, course.processes).await?;
        scaled.push(Scaled {
            workload: course.workload,
            run_ms: course.ms,
            processes: course.processes,
            seconds_one: one,
            seconds_many: many,
            ratio: one / many,
            target: course.target,
        });
    }
    Ok(scaled)
}

impl Course {
    async fn seconds(
        &self,
        url: &str,
        store: &OpenStore,
        meter: &Meter,
        processes: usize,
    ) -> anyhow::Result<f64> {
        meter.start().await?; // for its checkpoint
        let mut workers = start(url, processes)?;
        let measured = async {
            connected(url, processes).await?;
            let warm_up = WARM_UP.as_secs_f64() * 1e3 / self.ms * processes as f64;
            self.carry_out(store, warm_up as u64).await?;
            self.carry_out(store, self.runs).await
        };
        let measured = measured.await;
        for worker in &mut workers {
            worker.kill().await.context("end a worker of the bench")?;
        }
        let status = measured?;
        let finished_ms = status.finished_ms.context("a closed batch has no time of closing")?;
        Ok((finished_ms - status.created_ms) as f64 / 1e3)
    }

    async fn carry_out(&self, store: &OpenStore, runs: u64) -> anyhow::Result<BatchStatus> {
        let mut spec = BatchSpec::new(self.workload, runs);
        spec.snapshot = serde_json::json!({ "ms": self.ms });
        let batch = tidegate::submit(&**store, &builtin(), spec).await?;
        let start = Instant::now();
        loop {
            let found = store.batches(BatchQuery::one(batch.id)).await?;
            let status = found.into_iter().next().context("the batch of the bench is gone")?;
            match status.state {
                BatchState::Completed => return Ok(status),
                BatchState::Running if start.elapsed() < COURSE_DEADLINE => sleep(LOOK).await,
                state => bail!("batch {} of the bench ended as {state:?}", batch.id),
            }
        }
    }
}

/// Starts worker processes of one thread each.
fn start(url: &str, processes: usize) -> anyhow::Result<Vec<Child>> {
    let program = std::env::current_exe().context("find this program to start workers")?;
    (1..=processes)
        .map(|number| {
            Command::new(&program)
                .args(["worker", "--threads", "1", "--quiet"])
                .env("TIDEGATE_STORE", named(url, number))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .context("start a worker of the bench")
        })
        .collect()
}

fn named(url: &str, number: usize) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}application_name={NAME}{number}")
}

/// Waits until every worker has a connection.
async fn connected(url: &str, processes: usize) -> anyhow::Result<()> {
    let client = connect(url).await?;
    let start = Instant::now();
    while client.query_one(CONNECTED, &[&NAME]).await?.get::<_, i64>(0) < processes as i64 {
        ensure!(
            start.elapsed() < START_DEADLINE,
            "not all of {processes} workers of the bench are connected after {START_DEADLINE:?}: \
             other work on this machine, or a pooler that hides names"
        );
        sleep(LOOK).await;
    }
    Ok(())
}
