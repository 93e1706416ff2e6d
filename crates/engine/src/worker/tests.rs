use super::*;
use crate::options::Until;
use async_trait::async_trait;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_core::{
    Aggregates, Batch, BatchId, BatchState, Class, Fence, Inspect, InvalidSnapshot, Keep, Kind,
    Lease, Memory, RetryPolicy, Run, RunError, Snapshot, Submit, WorkerId, Workload,
    claim::{Claim, ClaimRequest},
    inspect::{BatchQuery, BatchStatus},
    run::Emitted,
    settle::{Settled, Settlement},
    source::{Capabilities, Renewal},
    submit::NewBatch,
};

/// Yields its index; hangs where told to.
#[derive(Clone, Default)]
struct Counting {
    hang: bool,
    hang_at: Option<u64>,
    stop_at: Option<(u64, Stop)>,
}

impl Workload for Counting {
    type Prepared = ();
    type Output = u64;

    fn name(&self) -> &str {
        "counting"
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), run: &mut Run) -> Result<u64, RunError> {
        while self.hang || self.hang_at == Some(run.index()) && run.attempts() == 0 {
            std::thread::park(); // nobody unparks it
        }
        if let Some((at, stop)) = &self.stop_at
            && *at == run.index()
        {
            stop.stop();
        }
        run.number("index", run.index() as f64);
        Ok(run.index())
    }
}

/// The memory store, counting calls, and failing where told to.
struct Counted {
    inner: Memory,
    calls: AtomicU64,
    /// Settling never succeeds.
    away: bool,
    /// This batch cannot be closed.
    damaged: Option<BatchId>,
    /// The second claim never ends.
    one_claim: bool,
}

impl Counted {
    fn make() -> Self {
        let start = std::time::Instant::now();
        let inner = Memory::new(move || start.elapsed());
        Self { inner, calls: AtomicU64::new(0), away: false, damaged: None, one_claim: false }
    }

    fn new() -> Arc<Self> {
        Arc::new(Self::make())
    }

    fn called(&self) -> &Memory {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &self.inner
    }

    async fn submit(&self, runs: u64, timeout: Option<Duration>) -> Batch {
        let batch = NewBatch {
            workload: "counting".to_owned(),
            snapshot: Snapshot::from_canonical("null".to_owned()),
            seed: 1,
            runs,
            keep: Keep::All,
            retry: RetryPolicy { base: Duration::ZERO, ..RetryPolicy::default() },
            timeout,
        };
        self.inner.submit(batch).await.unwrap()
    }

    async fn status(&self, batch: BatchId) -> BatchStatus {
        self.inner.batches(BatchQuery::one(batch)).await.unwrap().remove(0)
    }

    async fn aggregates(&self, batch: BatchId) -> Aggregates {
        self.inner.aggregates(batch).await.unwrap()
    }
}

#[async_trait]
impl Source for Counted {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        if self.one_claim && self.calls.load(Ordering::Relaxed) > 0 {
            std::future::pending::<()>().await;
        }
        self.called().claim(request).await
    }

    async fn renew(&self, request: Renewal) -> Result<Vec<Fence>, StoreError> {
        self.called().renew(request).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        if self.away {
            return Err(StoreError::new(Kind::Unreachable, Class::Unavailable, "settle", "away"));
        }
        self.called().settle(settlement).await
    }

    async fn give_back(&self, leases: Vec<Lease>) -> Result<(), StoreError> {
        self.called().give_back(leases).await
    }

    async fn finalize(&self, batches: Vec<BatchId>) -> Result<Vec<Finalized>, StoreError> {
        if self.damaged.is_some_and(|damaged| batches.contains(&damaged)) {
            return Err(StoreError::new(Kind::Corrupt, Class::Permanent, "finalize", "damaged"));
        }
        self.called().finalize(batches).await
    }

    async fn wake(&self) {
        self.inner.wake().await
    }
}

fn options() -> WorkerOptions {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let worker = WorkerId(format!("worker-{}", MADE.fetch_add(1, Ordering::Relaxed)));
    WorkerOptions { threads: 2, until: Until::Idle, ..WorkerOptions::new(worker) }
}

async fn work(
    store: Arc<Counted>,
    counting: Counting,
    options: WorkerOptions,
    stop: Stop,
) -> Report {
    let workloads = Workloads::new().with(counting);
    Worker::new(store, workloads, options).run(stop).await.unwrap()
}

#[tokio::test]
async fn calls_grow_with_ranges_and_not_with_runs() {
    let store = Counted::new();
    let batch = store.submit(100_000, None).await;
    let report = work(store.clone(), Counting::default(), options(), Stop::new()).await;
    assert_eq!(store.aggregates(batch.id).await.runs, 100_000);
    assert_eq!(report.finalized.len(), 1);
    let calls = store.calls.load(Ordering::Relaxed);
    assert!(calls <= 500, "{calls} calls for 100,000 runs: law 1 allows 0.005 per run");
}

#[tokio::test]
async fn the_same_bits_for_any_threads_and_lengths() {
    let mut seen = Vec::new();
    for (threads, range_length, flush_runs) in
        [(1, None, 10_000), (5, None, 100), (2, Some(1), 1), (3, Some(10_000), 7)]
    {
        let store = Counted::new();
        let batch = store.submit(2_000, None).await;
        let options = WorkerOptions { threads, range_length, flush_runs, ..options() };
        work(store.clone(), Counting::default(), options, Stop::new()).await;
        seen.push(store.aggregates(batch.id).await.encode());
    }
    seen.dedup();
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn flushing_every_run_settles_run_by_run() {
    let store = Counted::new();
    store.submit(50, None).await;
    let options = WorkerOptions { flush_runs: 1, range_length: Some(25), ..options() };
    let phases = work(store, Counting::default(), options, Stop::new()).await.phases;
    assert_eq!((phases.settles, phases.settle_transactions, phases.settled_runs), (50, 50, 50));
    assert_eq!(phases.settled_rows, 50 * 3, "each a page, a lease and a total");
    assert!(
        phases.claims < 20,
        "{} claims, though a settlement alone makes no room",
        phases.claims
    );
}

#[tokio::test]
async fn a_name_that_was_used_before_counts_nothing_twice_and_loses_nothing() {
    let store = Counted::new();
    let batch = store.submit(3_000, None).await;
    for stop_at in [1_000, 2_000, u64::MAX] {
        let stop = Stop::new();
        let counting = Counting { stop_at: Some((stop_at, stop.clone())), ..Counting::default() };
        let options = WorkerOptions { range_length: Some(100), ..options() };
        let worker = WorkerId("the same".to_owned());
        work(store.clone(), counting, WorkerOptions { worker, ..options }, stop).await;
    }
    assert_eq!(store.aggregates(batch.id).await.runs, 3_000);
}

/// Meets others at a barrier, so that it only returns if all of them run at the same time.
struct Meeting(std::sync::Barrier);

impl Workload for Meeting {
    type Prepared = ();
    type Output = ();

    fn name(&self) -> &str {
        "counting"
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), _: &mut Run) -> Result<(), RunError> {
        self.0.wait();
        Ok(())
    }
}

#[tokio::test]
async fn all_threads_act_at_the_same_time() {
    let store = Counted::new();
    let batch = store.submit(15, None).await;
    let workloads = Workloads::new().with(Meeting(std::sync::Barrier::new(5)));
    let options = WorkerOptions { threads: 5, range_length: Some(1), ..options() };
    let ended = Worker::new(store.clone(), workloads, options).run(Stop::new());
    let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
    ended.expect("all threads get a run").unwrap();
    assert_eq!(store.status(batch.id).await.progress.completed, 15);
}

#[tokio::test]
async fn a_run_that_never_returns_is_a_verdict_for_that_run_alone() {
    let store = Counted::new();
    let batch = store.submit(200, Some(Duration::from_millis(20))).await;
    let counting = Counting { hang_at: Some(77), ..Counting::default() };
    let options = WorkerOptions { threads: 1, ..options() };
    work(store.clone(), counting, options, Stop::new()).await;
    let status = store.status(batch.id).await;
    assert_eq!((status.state, status.progress.completed), (BatchState::Completed, 200));
}

/// Its first attempt hangs until the second begins.
#[derive(Default)]
struct Late {
    second: std::sync::Mutex<bool>,
    begun: std::sync::Condvar,
}

impl Workload for Late {
    type Prepared = ();
    type Output = u32;

    fn name(&self) -> &str {
        "counting"
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), run: &mut Run) -> Result<u32, RunError> {
        if run.attempts() > 0 {
            *self.second.lock().unwrap() = true;
            self.begun.notify_all();
        } else {
            let second = self.second.lock().unwrap();
            drop(self.begun.wait_while(second, |second| !*second).unwrap());
        }
        Ok(run.attempts())
    }
}

#[tokio::test]
async fn a_hung_run_that_comes_back_after_all_changes_nothing() {
    let store = Counted::new();
    let batch = store.submit(1, Some(Duration::from_millis(1))).await;
    let workloads = Workloads::new().with(Late::default());
    let options = WorkerOptions { threads: 1, ..options() };
    Worker::new(store.clone(), workloads, options).run(Stop::new()).await.unwrap();
    let mut expected = Aggregates::default();
    expected.add(0, b"1", &Emitted::default());
    assert_eq!(store.aggregates(batch.id).await, expected);
}

#[tokio::test]
async fn a_worker_whose_runs_all_hang_gives_up() {
    let store = Counted::new();
    store.submit(100, Some(Duration::from_millis(1))).await;
    let workloads = Workloads::new().with(Counting { hang: true, ..Counting::default() });
    let options = WorkerOptions { threads: 1, ..options() };
    let ended = Worker::new(store.clone(), workloads, options).run(Stop::new()).await;
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("9 runs hang beyond their time-out"), "{error}");
}

#[tokio::test]
async fn a_stop_settles_what_is_finished_and_gives_back_the_rest() {
    let store = Counted::new();
    let batch = store.submit(1_000_000, None).await;
    let stop = Stop::new();
    let counting = Counting { stop_at: Some((5_000, stop.clone())), ..Counting::default() };
    work(store.clone(), counting, options(), stop).await;

    let before = store.status(batch.id).await.progress;
    assert!(before.completed > 0 && before.completed < 1_000_000);
    assert_eq!(before.retrying + before.dead, 0, "a stop uses up no attempt");
    work(store.clone(), Counting::default(), options(), Stop::new()).await;
    assert_eq!(store.status(batch.id).await.progress.completed, 1_000_000);
    assert_eq!(store.aggregates(batch.id).await.runs, 1_000_000);
}

#[tokio::test]
async fn a_small_batch_is_not_stuck_behind_a_huge_one() {
    let store = Counted::new();
    let huge = store.submit(2_000_000, None).await;
    let small = store.submit(100, None).await;
    let report = work(store.clone(), Counting::default(), options(), Stop::new()).await;
    let order: Vec<BatchId> = report.finalized.iter().map(|closed| closed.batch).collect();
    assert_eq!(order, [small.id, huge.id]);
}

#[tokio::test]
async fn a_stop_ends_within_its_grace_though_the_store_is_away() {
    let store = Arc::new(Counted { away: true, ..Counted::make() });
    store.submit(1_000, None).await;
    let stop = Stop::new();
    let counting = Counting { stop_at: Some((3, stop.clone())), ..Counting::default() };
    let options = WorkerOptions { grace: Duration::ZERO, ..options() };
    let ended = work(store, counting, options, stop);
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("it ends by itself");
}

#[tokio::test]
async fn a_stop_lets_no_run_begin_though_a_claim_never_ends() {
    let store = Arc::new(Counted { one_claim: true, ..Counted::make() });
    let batch = store.submit(1_000_000, None).await;
    let stop = Stop::new();
    let counting = Counting { stop_at: Some((0, stop.clone())), ..Counting::default() };
    let range_length = Some(100_000);
    let options = WorkerOptions { range_length, grace: Duration::from_millis(200), ..options() };
    work(store.clone(), counting, options, stop).await;
    let progress = store.status(batch.id).await.progress;
    assert!((1..200_000).contains(&progress.completed), "{progress:?}");
    assert_eq!(progress.leased + progress.completed + progress.untouched, 1_000_000);
}

#[tokio::test]
async fn a_worker_that_is_dropped_begins_no_further_run() {
    let store = Counted::new();
    store.submit(1_000_000, None).await;
    let workloads = Workloads::new().with(Counting::default());
    let worker = Worker::new(store.clone(), workloads, options());
    let desk = worker.shared.desk.clone();
    let dropped = tokio::time::timeout(Duration::ZERO, worker.run(Stop::new())).await;
    assert!(dropped.is_err(), "it had no time");
    while let Some(acting) = desk.next().await {
        assert!(acting.begin(Instant::now()).is_none(), "what still lies there is halted");
    }
}

#[tokio::test]
async fn a_batch_that_cannot_be_closed_holds_up_no_other() {
    let mut store = Counted::make();
    let damaged = store.submit(10, None).await;
    store.damaged = Some(damaged.id);
    let healthy = store.submit(5_000, None).await;
    let store = Arc::new(store);
    work(store.clone(), Counting::default(), options(), Stop::new()).await;
    assert_eq!(store.status(healthy.id).await.state, BatchState::Completed);
    assert_eq!(store.status(damaged.id).await.state, BatchState::Running);
}

#[tokio::test]
async fn a_lease_that_is_too_short_or_too_long_is_refused() {
    let store = Counted::new();
    store.submit(10, None).await;
    for lease in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(999)] {
        let options = WorkerOptions { lease, ..WorkerOptions::new(WorkerId("w".to_owned())) };
        let worker = Worker::new(store.clone(), Workloads::new(), options);
        let error = worker.run(Stop::new()).await.expect_err("it is too short");
        assert!(
            matches!(error, WorkerError::Lease(UnfitLease::TooShort(short)) if short == lease),
            "{error}"
        );
        assert!(error.to_string().contains("use 1s or more"), "{error}");
    }
    for lease in [Duration::from_secs(86_401), Duration::MAX] {
        let options = WorkerOptions { lease, ..WorkerOptions::new(WorkerId("w".to_owned())) };
        let worker = Worker::new(store.clone(), Workloads::new(), options);
        let error = worker.run(Stop::new()).await.expect_err("it is too long");
        assert!(error.to_string().contains("at most one day"), "{error}");
    }
    assert_eq!(store.calls.load(Ordering::Relaxed), 0, "nothing was asked of the store");
}
