//! Batches on a server that goes back in time under living workers: every run is in the results once,
//! and in the aggregates once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "the tests of relays use more of it")]
#[path = "../relay/server.rs"]
mod server;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use server::Server;
use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_core::{
    Aggregates, Batch, BatchId, BatchState, Inspect, InvalidSnapshot, Keep, RetryPolicy, Run,
    RunError, Snapshot, Submit, WorkerId, Workload, Workloads,
    inspect::{BatchQuery, PageQuery},
    submit::NewBatch,
};
use tidegate_drill::postgres::Crash;
use tidegate_engine::{Report, Stop, Until, Worker, WorkerError, WorkerOptions};
use tidegate_postgres::Postgres;
use tokio::task::{JoinHandle, block_in_place};

/// What is waited for comes within this time, or the test fails.
const DEADLINE: Duration = Duration::from_secs(60);

const RUNS: u64 = 12_000;
const SEED: u64 = 4_711;

/// Each run takes a moment, and fails at first now and then.
struct Draw;

impl Workload for Draw {
    type Prepared = ();
    type Output = u32;

    fn name(&self) -> &str {
        "draw"
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), run: &mut Run) -> Result<u32, RunError> {
        std::thread::sleep(Duration::from_micros(100));
        let value = run.rng().next_u32();
        if value.is_multiple_of(50) && run.attempts() == 0 {
            return Err(RunError::new("not yet"));
        }
        run.number("value", value.into());
        Ok(value)
    }
}

/// The aggregates of an undisturbed batch.
fn expected() -> Aggregates {
    let mut aggregates = Aggregates::default();
    for index in 0..RUNS {
        let mut run = Run::new(SEED, index);
        let value = run.rng().next_u32();
        run.number("value", value.into());
        aggregates.add(index, value.to_string().as_bytes(), run.finish().unwrap());
    }
    aggregates
}

async fn submit(store: &Postgres) -> Batch {
    let base = Duration::from_millis(5);
    let batch = NewBatch {
        workload: "draw".to_owned(),
        snapshot: Snapshot::from_canonical("null".to_owned()),
        seed: SEED,
        runs: RUNS,
        keep: Keep::All,
        retry: RetryPolicy { max_attempts: 5, base, cap: base },
        timeout: None,
    };
    store.submit(batch).await.unwrap()
}

/// A worker that lives until the batch is done, whatever happens to the server.
async fn work(url: &str, number: usize) -> JoinHandle<Result<Report, WorkerError>> {
    let store = Arc::new(Postgres::connect(url).await.unwrap());
    let options = WorkerOptions {
        threads: 2,
        lease: Duration::from_secs(2),
        target: Duration::from_millis(100),
        flush_runs: 50,
        flush_after: Duration::from_millis(10),
        until: Until::Idle,
        ..WorkerOptions::new(WorkerId(format!("worker {number}")))
    };
    let worker = Worker::new(store, Workloads::new().with(Draw), options);
    tokio::spawn(worker.run(Stop::new()))
}

/// Waits until so many runs are done, as the store says that anybody can reach.
async fn until_completed(url: &str, batch: BatchId, runs: u64) {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < DEADLINE, "waited in vain for {runs} runs");
        if let Ok(store) = Postgres::connect(url).await
            && let Ok(found) = store.batches(BatchQuery::one(batch)).await
            && found.first().is_some_and(|status| status.progress.completed >= runs)
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn check(url: &str, batch: BatchId) {
    let store = Postgres::connect(url).await.unwrap();
    let status = store.batches(BatchQuery::one(batch)).await.unwrap().remove(0);
    assert_eq!((status.state, status.progress.completed), (BatchState::Completed, RUNS));
    let mut indexes = Vec::new();
    let mut query = PageQuery::first(batch, 1_000);
    loop {
        let pages = store.pages(query.clone()).await.unwrap();
        let Some(last) = pages.last() else { break };
        query.from = last.range.lo + 1;
        let entries = pages.iter().flat_map(|page| page.entries().unwrap());
        indexes.extend(entries.map(|(index, _)| index));
    }
    indexes.sort_unstable();
    assert!(indexes.into_iter().eq(0..RUNS), "each run has one result");
    let (found, expected) = (store.aggregates(batch).await.unwrap(), expected());
    assert_eq!(found.runs, expected.runs, "runs in the aggregates");
    assert_eq!(found.digest, expected.digest);
    assert_eq!(found.encode(), expected.encode());
}

fn dice() -> ChaCha8Rng {
    let seed = RandomState::new().hash_one(());
    eprintln!("seed {seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

/// The server writes its log down as late as it can, and crashes at random points.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_without_synchronous_commit_count_no_run_twice() {
    let mut server = Server::start(
        "synchronous_commit = off\nwal_writer_delay = 10s\nautovacuum = off\nwal_buffers = 16MB",
    );
    let store = server.store().await;
    let batch = submit(&store).await.id;
    let workers = [work(&server.cluster.url(), 1).await, work(&server.cluster.url(), 2).await];
    let mut dice = dice();
    let mut done = 0;
    for _ in 0..4 {
        done += dice.random_range(1..RUNS / 6);
        until_completed(&server.cluster.url(), batch, done).await;
        block_in_place(|| server.restart());
    }
    for worker in workers {
        tokio::time::timeout(DEADLINE, worker).await.unwrap().unwrap().unwrap();
    }
    check(&server.cluster.url(), batch).await;
}

/// A standby that hears nothing any more becomes the server: what was settled since is done again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_standby_that_lags_counts_no_run_twice() {
    let mut dice = dice();
    let mut server = Server::start("autovacuum = off\nwal_level = replica");
    let url = server.cluster.url();
    let batch = submit(&*server.store().await).await.id;
    let workers = [work(&url, 1).await, work(&url, 2).await];
    let mut done = 0;
    for _ in 0..2 {
        done += dice.random_range(1..RUNS / 8);
        until_completed(&url, batch, done).await;
        block_in_place(|| {
            server.cluster.add_standby().unwrap();
            server.cluster.hold_standby().unwrap();
        });
        done += dice.random_range(200..RUNS / 8);
        until_completed(&url, batch, done).await;
        block_in_place(|| server.cluster.fail_over(Crash::Kill).unwrap());
    }
    for worker in workers {
        tokio::time::timeout(DEADLINE, worker).await.unwrap().unwrap().unwrap();
    }
    check(&url, batch).await;
}
