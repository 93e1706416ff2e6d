//! Lets a plan happen.

use crate::{
    Faults,
    hands::VirtualHands,
    history::{Event, History},
    plan::{BatchPlan, Fate, Plan, Travel, WorkerPlan},
    scheduler::Scheduler,
    store::{Applied, FaultyStore},
    workload::{Behaviour, Simulated},
};
use std::{cell::OnceCell, collections::BTreeMap, sync::Arc, time::Duration};
use tidegate_core::{
    Aggregates, Exception, Inspect, Memory, Page, Snapshot, Submit, WorkerId, Workloads,
    inspect::{BatchQuery, BatchStatus, ExceptionQuery, PageQuery},
    submit::NewBatch,
};
use tidegate_engine::{Hands, Stop, Until, Worker, WorkerOptions};
use tokio::{
    runtime::Builder,
    sync::Notify,
    time::{Instant, sleep},
};

/// How the world looks when all is done.
#[derive(Debug)]
pub struct End {
    /// Each batch, in the order of the plan.
    pub batches: Vec<BatchEnd>,
    /// All that happened.
    pub history: History,
    /// How often each worker of the plan was polled.
    pub polls: Vec<u64>,
}

/// A batch at the end.
#[derive(Debug)]
pub struct BatchEnd {
    /// Its state and progress.
    pub status: BatchStatus,
    /// Its aggregates.
    pub aggregates: Aggregates,
    /// Its pages.
    pub pages: Vec<Page>,
    /// Its exceptions.
    pub exceptions: Vec<Exception>,
}

/// How long a stopped worker may take.
const GRACE: Duration = Duration::from_secs(5);

/// How long until somebody starts a worker anew that ended.
const RESTART: Duration = Duration::from_millis(50);

/// A run that ends its worker is given up long before so many have ended.
const MOST_STARTS: usize = 200;

thread_local! {
    static START: OnceCell<Instant> = const { OnceCell::new() };
}

/// Virtual time since the world began, far from zero so that nothing is due before it is submitted.
fn clock() -> Duration {
    let start = START.with(|start| *start.get_or_init(Instant::now));
    Duration::from_secs(1_000) + start.elapsed()
}

/// Lets the plan happen, on a thread of its own.
pub fn simulate(plan: &Plan) -> End {
    let plan = plan.clone();
    let world = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime can be made").block_on(happen(&plan))
    });
    world.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

async fn happen(plan: &Plan) -> End {
    let world = World::new(plan);
    for (name, batch) in names(plan).zip(&plan.batches) {
        let submitted = world.store.submit(new_batch(name, batch)).await;
        submitted.expect("the plan has only good batches");
    }
    let mut scheduler = Scheduler::new(plan.seed);
    for (place, worker) in plan.workers.iter().enumerate() {
        scheduler.add(world.work(place, worker), worker.fate);
    }
    let last = plan.workers.len();
    let working = async {
        let polls = scheduler.await;
        world.work(last, &healthy()).await;
        polls
    };
    let (polls, ()) = tokio::join!(working, world.travel(&plan.travels));
    // The store may have gone back after all was done.
    world.work(last, &healthy()).await;
    world.end(polls).await
}

fn names(plan: &Plan) -> impl Iterator<Item = String> {
    (0..plan.batches.len()).map(|place| format!("batch-{place}"))
}

fn new_batch(name: String, plan: &BatchPlan) -> NewBatch {
    NewBatch {
        workload: name,
        snapshot: Snapshot::from_canonical("null".to_owned()),
        seed: plan.seed,
        runs: plan.runs,
        keep: plan.keep,
        retry: plan.retry,
        timeout: None,
    }
}

/// The worker that finishes what the others have left.
fn healthy() -> WorkerPlan {
    WorkerPlan {
        hands: 2,
        flush_runs: 50,
        flush_after: Duration::from_millis(50),
        range_length: None,
        lease: Duration::from_secs(5),
        starts_at: Duration::ZERO,
        faults: Faults::default(),
        fate: Fate::Lives,
    }
}

#[derive(Clone)]
struct World {
    seed: u64,
    store: Memory,
    workloads: Workloads,
    behaviours: Arc<BTreeMap<String, Behaviour>>,
    history: History,
    applied: Applied,
}

impl World {
    fn new(plan: &Plan) -> Self {
        let behaviours: BTreeMap<String, Behaviour> =
            names(plan).zip(plan.batches.iter().map(|batch| batch.behaviour)).collect();
        let workloads = behaviours.iter().fold(Workloads::new(), |all, (name, behaviour)| {
            all.with(Simulated { name: name.clone(), behaviour: *behaviour })
        });
        Self {
            seed: plan.seed,
            store: Memory::new(clock),
            workloads,
            behaviours: Arc::new(behaviours),
            history: History::default(),
            applied: Applied::default(),
        }
    }

    /// The store loses its last transactions, again and again. Its clock goes on.
    async fn travel(&self, travels: &[Travel]) {
        for travel in travels {
            sleep(travel.after).await;
            let (saved, length) = (self.store.save(), self.history.len());
            let applied = self.applied.copy();
            sleep(travel.lost).await;
            self.store.go_back(&saved);
            self.history.go_back(length);
            self.applied.go_back(&applied);
        }
    }

    /// A worker's whole life. A run that ends its process ends all that it does; somebody starts it
    /// anew under the same name.
    fn work(&self, place: usize, plan: &WorkerPlan) -> impl Future<Output = ()> + use<> {
        let (world, plan) = (self.clone(), plan.clone());
        async move {
            sleep(plan.starts_at).await;
            let stops_at = match plan.fate {
                Fate::Stops { at } => at,
                _ => Duration::MAX / 4,
            };
            let begun = clock();
            for _ in 0..MOST_STARTS {
                let left = (begun + stops_at).saturating_sub(clock());
                if world.live(place, &plan, left).await {
                    return;
                }
                sleep(RESTART).await;
            }
            panic!("worker {place} was ended {MOST_STARTS} times");
        }
    }

    /// One life of a worker, which is asked to stop after a while. Returns whether it ended by itself.
    async fn live(&self, place: usize, plan: &WorkerPlan, stops_after: Duration) -> bool {
        let (stop, killed) = (Stop::new(), Arc::new(Notify::new()));
        let mut run = Box::pin(self.worker(place, plan, killed.clone()).run(stop.clone()));
        let fine = "only passing errors occur";
        tokio::select! {
            biased;
            () = killed.notified() => {
                self.history.add(clock(), place, Event::Ended);
                return false;
            }
            ended = &mut run => {
                ended.expect(fine);
                return true;
            }
            () = sleep(stops_after) => stop.stop(),
        }
        let asked = clock();
        tokio::select! {
            biased;
            () = killed.notified() => {}
            ended = &mut run => {
                ended.expect(fine);
                self.history.add(clock(), place, Event::Stopped { asked, grace: GRACE });
            }
        }
        true
    }

    fn worker(&self, place: usize, plan: &WorkerPlan, killed: Arc<Notify>) -> Worker {
        let (store, history) = (self.store.clone(), self.history.clone());
        let applied = self.applied.clone();
        let source =
            FaultyStore::new(store, clock, plan.faults, place, history, applied, self.seed);
        let behaviours = self.behaviours.clone();
        let hands: Arc<dyn Hands> =
            Arc::new(VirtualHands { count: plan.hands, behaviours, killed });
        let options = WorkerOptions {
            threads: plan.hands,
            lease: plan.lease,
            target: Duration::from_millis(100),
            range_length: plan.range_length,
            flush_runs: plan.flush_runs,
            flush_after: plan.flush_after,
            grace: GRACE,
            until: Until::Idle,
            ..WorkerOptions::new(WorkerId(format!("worker-{place}")))
        };
        Worker::with_hands(Arc::new(source), self.workloads.clone(), options, hands, Arc::default())
    }

    async fn end(&self, polls: Vec<u64>) -> End {
        let listed = self.store.batches(BatchQuery::newest(100)).await;
        let mut batches = Vec::new();
        for status in listed.expect("reading memory does not fail").into_iter().rev() {
            batches.push(self.batch_end(status).await);
        }
        End { batches, history: self.history.clone(), polls }
    }

    async fn batch_end(&self, status: BatchStatus) -> BatchEnd {
        let batch = status.batch.id;
        let pages = PageQuery::first(batch, 10_000);
        let exceptions = ExceptionQuery { batch, state: None, from: 0, limit: 10_000 };
        let fine = "reading memory does not fail";
        BatchEnd {
            status,
            aggregates: self.store.aggregates(batch).await.expect(fine),
            pages: self.store.pages(pages).await.expect(fine),
            exceptions: self.store.exceptions(exceptions).await.expect(fine),
        }
    }
}
