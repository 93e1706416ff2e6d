use super::*;
use crate::{Stop, Until, Worker, WorkerOptions, phases::Phases};
use std::{collections::BTreeMap, sync::Mutex};
use tidegate_core::{
    BatchState, Inspect, Keep, Memory, RetryPolicy, Run, RunError, Snapshot, Submit, WorkerId,
    Workload, Workloads,
    inspect::{BatchQuery, ExceptionQuery},
    sink::{Answer, Delivery, Hint, Outcome, SinkError, Verdict},
    submit::NewBatch,
};
use tidegate_pacer::{Options, Pacer};
use tokio::time::{Instant, sleep};

/// A sink that answers as it is told, and remembers what it took.
#[derive(Default)]
struct Fake {
    taken: Mutex<BTreeMap<String, u32>>,
    groups: Mutex<Vec<usize>>,
    bad: Vec<u64>,
    per_item: bool,
    /// The first answers are these.
    first: Mutex<Vec<Outcome>>,
    max: Option<usize>,
    /// It is not there for this one …
    poison: Option<u64>,
    /// … and hangs for this one.
    hangs: Option<u64>,
    /// This one breaks it.
    fatal: Option<u64>,
}

impl Fake {
    fn index(id: &str) -> u64 {
        id.rsplit('-').next().unwrap().parse().unwrap()
    }

    fn outcome(&self, delivery: &Delivery<'_>) -> Outcome {
        if let Some(first) = self.first.lock().unwrap().pop() {
            return first;
        }
        let has = |index: Option<u64>| {
            delivery.items.iter().any(|item| Some(Self::index(item.id)) == index)
        };
        if has(self.poison) {
            return Outcome::Unavailable("503".to_owned());
        }
        if has(self.hangs) {
            return Outcome::TimedOut;
        }
        if has(self.fatal) {
            return Outcome::Broken("no right".to_owned());
        }
        if self.max.is_some_and(|max| delivery.items.len() > max) {
            return Outcome::TooLarge("too many".to_owned());
        }
        let bad = |id: &str| self.bad.contains(&Self::index(id));
        if !self.per_item && delivery.items.iter().any(|item| bad(item.id)) {
            return Outcome::Refused("one is bad".to_owned());
        }
        let verdict = |item: &tidegate_core::sink::Item<'_>| {
            if bad(item.id) {
                return Verdict::Dead("it is bad".to_owned());
            }
            *self.taken.lock().unwrap().entry(item.id.to_owned()).or_default() += 1;
            Verdict::Done
        };
        Outcome::Answered(delivery.items.iter().map(verdict).collect())
    }
}

#[async_trait]
impl Sink for Fake {
    fn capabilities(&self) -> tidegate_core::sink::SinkCapabilities {
        tidegate_core::sink::SinkCapabilities {
            name: "fake",
            connections: vec!["main".to_owned()],
            operation: "post".to_owned(),
            max_group: 100,
            mixes_topics: true,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        sleep(Duration::from_millis(100)).await;
        self.groups.lock().unwrap().push(delivery.items.len());
        Answer { outcome: self.outcome(&delivery), hint: Hint::default() }
    }
}

struct Numbers;

impl Items for Numbers {
    fn read(&self, indexes: &[u64]) -> Result<Vec<Readable>, String> {
        let item = |index: &u64| Readable {
            id: format!("n-{index}"),
            payload: match index {
                666 => Err("line 667: it is no JSON".to_owned()),
                _ => Ok(format!("{{\"n\":{index}}}")),
            },
        };
        Ok(indexes.iter().map(item).collect())
    }
}

/// Only its name counts.
struct Named;

impl Workload for Named {
    type Prepared = ();
    type Output = ();

    fn name(&self) -> &str {
        "load"
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), tidegate_core::InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), _: &mut Run) -> Result<(), RunError> {
        unreachable!("a deliverer delivers")
    }
}

struct Loaded {
    sink: Arc<Fake>,
    store: Memory,
    deliverer: Arc<Deliverer>,
    ended: Result<(), String>,
}

impl Loaded {
    async fn dead(&self) -> Vec<(u64, String)> {
        let query =
            ExceptionQuery { batch: tidegate_core::BatchId(1), state: None, from: 0, limit: 99 };
        let dead = self.store.exceptions(query).await.unwrap();
        dead.into_iter().map(|exception| (exception.index, exception.reason)).collect()
    }

    async fn state(&self) -> BatchState {
        self.store.batches(BatchQuery::newest(1)).await.unwrap()[0].state
    }

    fn taken(&self) -> usize {
        self.sink.taken.lock().unwrap().len()
    }

    fn duplicates(&self) -> u32 {
        self.sink.taken.lock().unwrap().values().map(|times| times - 1).sum()
    }
}

async fn load(sink: Fake, runs: u64, group: usize, stop: Stop) -> Loaded {
    let origin = Instant::now();
    let store = Memory::new(move || origin.elapsed());
    let batch = NewBatch {
        workload: "load".to_owned(),
        snapshot: Snapshot::from_canonical("{}".to_owned()),
        seed: 0,
        runs,
        keep: Keep::None,
        retry: RetryPolicy::default(),
        timeout: None,
    };
    store.submit(batch).await.unwrap();
    let pacer = Pacer::new(Options::default(), ["main".to_owned()]).unwrap();
    let (sink, gate) = (Arc::new(sink), pacer.gate("post"));
    let items = Arc::new(Numbers);
    let deliverer = Deliverer::new(sink.clone(), items, group, gate, WallClock::start());
    let deliverer = Arc::new(deliverer);
    let options = WorkerOptions {
        until: Until::Idle,
        grain: group as u64,
        flush_after: Duration::from_millis(10),
        ..WorkerOptions::new(WorkerId("one".to_owned()))
    };
    let worker = Worker::with_hands(
        Arc::new(store.clone()),
        Workloads::new().with(Named),
        options,
        deliverer.clone(),
        Arc::new(Phases::default()),
    );
    let ended = worker.run(stop).await.map(drop).map_err(|error| error.to_string());
    Loaded { sink, store, deliverer, ended }
}

fn stop_after(time: Duration) -> Stop {
    let stop = Stop::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        sleep(time).await;
        stopping.stop();
    });
    stop
}

#[tokio::test(start_paused = true)]
async fn each_item_is_delivered_once_in_groups() {
    let loaded = load(Fake::default(), 2_005, 10, Stop::new()).await;
    assert_eq!(loaded.ended, Ok(()));
    assert_eq!((loaded.taken(), loaded.duplicates()), (2_004, 0));
    assert_eq!(loaded.dead().await, [(666, "line 667: it is no JSON".to_owned())]);
    assert_eq!(loaded.state().await, BatchState::CompletedWithFailures);
    let groups = loaded.sink.groups.lock().unwrap();
    let full = groups.iter().filter(|size| **size >= 9).count();
    assert!(full >= groups.len() - 25, "{full} of {}", groups.len());
    assert_eq!(loaded.deliverer.meter().sent().requests as usize, groups.len());
}

#[tokio::test(start_paused = true)]
async fn a_bad_item_is_found_and_set_aside_alone() {
    for per_item in [true, false] {
        let bad = vec![3, 4, 77];
        let sink = Fake { bad: bad.clone(), per_item, ..Fake::default() };
        let loaded = load(sink, 200, 50, Stop::new()).await;
        let dead: Vec<u64> = loaded.dead().await.into_iter().map(|(index, _)| index).collect();
        assert_eq!(dead, bad);
        assert_eq!((loaded.taken(), loaded.duplicates()), (197, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn throttles_and_absence_use_up_no_attempt() {
    let first = vec![
        Outcome::Throttled { retry_after: Some(Duration::from_secs(60)), reason: String::new() },
        Outcome::Unavailable("gone".to_owned()),
        Outcome::Throttled { retry_after: None, reason: String::new() },
    ];
    let sink = Fake { first: Mutex::new(vec![first; 4].concat()), ..Fake::default() };
    let loaded = load(sink, 100, 10, Stop::new()).await;
    assert_eq!((loaded.taken(), loaded.dead().await.len()), (100, 0));
    let sent = loaded.deliverer.meter().sent();
    assert_eq!((sent.throttled, sent.unavailable), (8, 4));
}

#[tokio::test(start_paused = true)]
async fn groups_that_are_too_large_get_smaller() {
    let loaded = load(Fake { max: Some(12), ..Fake::default() }, 500, 100, Stop::new()).await;
    assert_eq!((loaded.taken(), loaded.duplicates()), (500, 0));
    let groups = loaded.sink.groups.lock().unwrap();
    let refused = groups.iter().filter(|size| **size > 12).count();
    assert!(refused < 30, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn time_outs_are_sent_again_under_the_same_id() {
    let sink = Fake { first: Mutex::new(vec![Outcome::TimedOut; 3]), ..Fake::default() };
    let loaded = load(sink, 40, 10, Stop::new()).await;
    assert_eq!((loaded.taken(), loaded.dead().await.len()), (40, 0));
    assert_eq!(loaded.deliverer.meter().sent().timed_out, 3);
}

#[tokio::test(start_paused = true)]
async fn items_that_are_throttled_alone_use_up_no_attempt() {
    let retry_after = Some(Duration::from_secs(20));
    let mut partly = vec![Verdict::Done; 10];
    partly[3] = Verdict::Throttled { retry_after };
    partly[7] = Verdict::Throttled { retry_after };
    let sink = Fake { first: Mutex::new(vec![Outcome::Answered(partly)]), ..Fake::default() };
    let start = Instant::now();
    let loaded = load(sink, 10, 10, Stop::new()).await;
    assert_eq!((loaded.taken(), loaded.dead().await.len()), (2, 0), "the fake took only these");
    assert_eq!(*loaded.sink.groups.lock().unwrap(), [10, 2]);
    assert_eq!(loaded.deliverer.meter().sent().throttled, 1);
    assert!(start.elapsed() >= Duration::from_secs(20));
    assert_eq!(loaded.state().await, BatchState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_stop_settles_what_was_delivered_behind_a_throttled_item() {
    let retry_after = Some(Duration::from_secs(60));
    let mut partly = vec![Verdict::Done; 10];
    partly[3] = Verdict::Throttled { retry_after };
    let sink = Fake { first: Mutex::new(vec![Outcome::Answered(partly)]), ..Fake::default() };
    let loaded = load(sink, 10, 10, stop_after(Duration::from_secs(5))).await;
    let progress = loaded.store.batches(BatchQuery::newest(1)).await.unwrap()[0].progress;
    assert_eq!((progress.completed, progress.retrying), (9, 1));
}

#[tokio::test(start_paused = true)]
async fn a_problem_in_the_middle_settles_what_was_delivered() {
    let sink = Fake { bad: vec![1], fatal: Some(7), ..Fake::default() };
    let loaded = load(sink, 10, 10, Stop::new()).await;
    assert_eq!(loaded.ended, Err("no right".to_owned()));
    let progress = loaded.store.batches(BatchQuery::newest(1)).await.unwrap()[0].progress;
    assert_eq!(progress.completed as usize, loaded.taken());
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_hangs_for_all_is_no_fault_of_an_item() {
    let hangs = vec![Outcome::TimedOut; 25];
    let loaded =
        load(Fake { first: Mutex::new(hangs), ..Fake::default() }, 1, 1, Stop::new()).await;
    assert_eq!((loaded.taken(), loaded.dead().await.len()), (1, 0));
    assert_eq!(loaded.state().await, BatchState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_broken_sink_ends_the_load_and_nothing_is_dead() {
    let broken = Outcome::Broken("the token is refused".to_owned());
    let sink = Fake { first: Mutex::new(vec![broken]), ..Fake::default() };
    let loaded = load(sink, 100, 10, Stop::new()).await;
    assert_eq!(loaded.ended, Err("the token is refused".to_owned()));
    assert_eq!(loaded.dead().await, []);
    assert_eq!(loaded.state().await, BatchState::Running, "to be taken up again");
}

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_what_is_in_flight() {
    let stop = stop_after(Duration::from_millis(450));
    let loaded = load(Fake::default(), 100_000, 10, stop).await;
    let progress = loaded.store.batches(BatchQuery::newest(1)).await.unwrap()[0].progress;
    assert_eq!(progress.completed as usize, loaded.taken());
    assert!(progress.completed > 0);
    assert_eq!(loaded.duplicates(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_retry_after() {
    let wait = Some(Duration::from_secs(300));
    let throttled = Outcome::Throttled { retry_after: wait, reason: String::new() };
    let stop = stop_after(Duration::from_secs(3));
    let start = Instant::now();
    let sink = Fake { first: Mutex::new(vec![throttled]), ..Fake::default() };
    let loaded = load(sink, 100, 10, stop).await;
    assert_eq!((loaded.ended.clone(), loaded.taken()), (Ok(()), 0));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_group_that_fails_as_a_whole_is_halved() {
    let failed = Outcome::Answered(vec![Verdict::Retry("500".to_owned()); 10]);
    let sink = Fake { first: Mutex::new(vec![failed]), ..Fake::default() };
    let loaded = load(sink, 10, 10, Stop::new()).await;
    assert_eq!((loaded.taken(), loaded.duplicates(), loaded.dead().await.len()), (10, 0, 0));
    assert_eq!(*loaded.sink.groups.lock().unwrap(), [10, 5, 5]);
}

#[tokio::test(start_paused = true)]
async fn an_item_for_which_the_sink_is_never_there_holds_up_no_other() {
    let sink = Fake { poison: Some(33), ..Fake::default() };
    let loaded = load(sink, 200, 10, Stop::new()).await;
    assert_eq!((loaded.ended.clone(), loaded.taken()), (Ok(()), 199));
    let dead: Vec<u64> = loaded.dead().await.into_iter().map(|(index, _)| index).collect();
    assert_eq!(dead, [33]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_always_hangs_holds_up_no_other() {
    for (hanging, runs, group) in [(33, 200, 10), (5, 10, 10), (9, 10, 1)] {
        let sink = Fake { hangs: Some(hanging), ..Fake::default() };
        let loaded = load(sink, runs, group, Stop::new()).await;
        assert_eq!((loaded.ended.clone(), loaded.taken() as u64), (Ok(()), runs - 1));
        let dead: Vec<u64> = loaded.dead().await.into_iter().map(|(index, _)| index).collect();
        assert_eq!(dead, [hanging]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_hangs_for_all_does_not_make_groups_smaller() {
    let hangs = vec![Outcome::TimedOut; 2];
    let sink = Fake { first: Mutex::new(hangs), ..Fake::default() };
    let loaded = load(sink, 40, 10, Stop::new()).await;
    assert_eq!((loaded.taken(), loaded.duplicates()), (40, 0));
    assert!(loaded.sink.groups.lock().unwrap().iter().all(|size| *size == 10));
}

#[tokio::test(start_paused = true)]
async fn a_fatal_answer_lets_the_others_finish() {
    let sink = Fake { fatal: Some(150), ..Fake::default() };
    let loaded = load(sink, 1_000, 1, Stop::new()).await;
    assert_eq!(loaded.ended, Err("no right".to_owned()));
    let progress = loaded.store.batches(BatchQuery::newest(1)).await.unwrap()[0].progress;
    assert_eq!(progress.completed as usize, loaded.taken(), "all that was delivered is settled");
}
