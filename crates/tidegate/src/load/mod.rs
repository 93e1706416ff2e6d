//! Loading: a file of records into a sink, at the pace that it can bear.
//!
//! A load is a batch whose run i is record i. What was settled is never sent again; a process that is
//! killed repeats what it had in flight and no more.

mod errors;
mod identity;
mod items;
mod keeper;
mod origin;
mod take_up;

pub use errors::{Failure, FailuresError};
pub use identity::{About, about};
pub use keeper::{Pace, Stalled};
pub use take_up::TakenUp;

use crate::OpenStore;
use identity::Identity;
use items::Loaded;
use keeper::{Keeper, decoded};
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    BatchId, Keep, RetryPolicy, Sink, StoreError, Workloads,
    pace::{NotedPace, PaceQuery},
    sink::{Budget, BudgetKind, SinkError},
    submit::NewBatch,
};
use tidegate_engine::{
    Deliverer, Hands, PhaseReport, Stop, Until, Worker, WorkerError, WorkerOptions,
    deliver::{Meter, Sent, WallClock},
    phases::Phases,
};
use tidegate_pacer::{self as pacer, Gate, OutOfRange, Pacer, Statistics};
use tidegate_records::Records;
use tokio::sync::OnceCell;

/// Acknowledged records are settled at once, or nearly so: what is not settled is sent again after a
/// crash.
const FLUSH_AFTER: Duration = Duration::from_millis(10);
/// How much work a lease holds: little, so that all end together.
const TARGET: Duration = Duration::from_millis(250);
/// How late a load that was killed can be taken up by the next process.
pub const LEASE: Duration = Duration::from_secs(10);

/// What to load where, and how.
pub struct LoadSpec {
    /// Names the sink for people; notes about its pace go by it.
    pub to: String,
    /// All that makes it another sink. Loads of the same file to the same place are the same load; only
    /// its hash is stored.
    pub place: String,
    /// At most so many records in one request.
    pub group: usize,
    /// How to pace.
    pub pacer: pacer::Options,
    /// After so many failed attempts a record is dead.
    pub max_attempts: u32,
}

/// A file, a sink, and the pace between them.
pub struct Load {
    identity: Identity,
    records: Arc<Records>,
    to: String,
    group: usize,
    retry: RetryPolicy,
    gate: Gate,
    clock: WallClock,
    sink: Arc<dyn Sink>,
    deliverer: Arc<Deliverer>,
    recalled: OnceCell<()>,
}

/// What came of working on a load.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// Where the worker's time went.
    pub phases: PhaseReport,
    /// What was sent.
    pub sent: Sent,
    /// Where the pace stood at the end, for each connection.
    pub statistics: Vec<Statistics>,
}

impl Load {
    /// Puts it together. Nothing is sent yet.
    pub fn new(records: Records, sink: Arc<dyn Sink>, spec: LoadSpec) -> Result<Self, OutOfRange> {
        let capabilities = sink.capabilities();
        let mut options = spec.pacer.clone();
        options.budgets.extend(capabilities.budgets.iter().map(budget));
        let pacer = Pacer::new(options, capabilities.connections)?;
        let gate = pacer.gate(&capabilities.operation);
        let records = Arc::new(records);
        let identity = Identity::new(&records, &spec.place, &spec.to, &capabilities.operation);
        let clock = WallClock::start();
        let group = spec.group.clamp(1, capabilities.max_group);
        let items = Arc::new(Loaded::new(records.clone(), &identity));
        let deliverer = Deliverer::new(sink.clone(), items, group, gate.clone(), clock);
        Ok(Self {
            identity,
            records,
            to: spec.to,
            group,
            retry: RetryPolicy { max_attempts: spec.max_attempts, ..RetryPolicy::default() },
            gate,
            clock,
            sink,
            deliverer: Arc::new(deliverer),
            recalled: OnceCell::new(),
        })
    }

    /// The records.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The batch that this load is.
    pub fn batch(&self) -> NewBatch {
        NewBatch {
            workload: self.identity.workload.clone(),
            snapshot: self.identity.snapshot.clone(),
            seed: 0,
            runs: self.records.len(),
            keep: Keep::None,
            retry: self.retry,
            timeout: None,
        }
    }

    /// Reaches the sink, and sends no record. A sink that is known to want to be left alone is.
    pub async fn check(&self, store: &OpenStore) -> Result<(), SinkError> {
        self.recall(store).await;
        let now = self.clock.time();
        if self.gate.throttled_until() > now {
            return Ok(());
        }
        let waits = self.sink.check().await?;
        let now = self.clock.time();
        for (connection, wait) in waits.into_iter().enumerate() {
            wait.into_iter().for_each(|wait| self.gate.told(connection, now + wait));
        }
        Ok(())
    }

    /// Begins at the pace at which the last process ended.
    async fn recall(&self, store: &OpenStore) {
        self.recalled.get_or_init(|| keeper::recall(self, store)).await;
    }

    /// Where the pace stands, for each connection.
    pub fn statistics(&self) -> Vec<Statistics> {
        self.gate.statistics(self.clock.time())
    }

    /// Why the sink is not there, and how long until the next try; `None` while it is.
    pub fn absence(&self) -> Option<(String, Duration)> {
        self.deliverer.absence()
    }

    /// Why nothing is taken although no attempt is used up, and for how long nothing was: this may go on for
    /// ever.
    pub fn stall(&self) -> Option<(String, Duration)> {
        self.deliverer.stall()
    }

    /// What this process has sent so far.
    pub fn meter(&self) -> Arc<Meter> {
        self.deliverer.meter()
    }

    /// Works on the batch until it is closed, or a stop is asked for. The pace is kept in the store,
    /// for people and for the next process.
    pub async fn run(
        &self,
        store: &OpenStore,
        batch: BatchId,
        options: WorkerOptions,
        stop: Stop,
    ) -> Result<LoadReport, WorkerError> {
        let options = WorkerOptions {
            only: Some(batch),
            until: Until::Idle,
            grain: self.group as u64,
            flush_after: FLUSH_AFTER,
            target: TARGET,
            lease: LEASE,
            ..options
        };
        let keeper = Keeper::new(self, store, batch, options.worker.clone());
        self.recall(store).await;
        keeper.begin().await;
        let hands: Arc<dyn Hands> = self.deliverer.clone();
        let workloads = Workloads::new().with(self.identity.clone());
        let phases = Arc::new(Phases::default());
        let worker = Worker::with_hands(store.source(), workloads, options, hands, phases);
        let worked = tokio::select! {
            biased;
            worked = worker.run(stop) => worked,
            never = keeper.keep() => match never {},
        };
        keeper.note_last().await;
        let report = worked?;
        let (sent, statistics) = (self.meter().sent(), self.statistics());
        Ok(LoadReport { phases: report.phases, sent, statistics })
    }
}

fn budget(budget: &Budget) -> pacer::Budget {
    let kind = match budget.kind {
        BudgetKind::Requests => pacer::BudgetKind::Requests,
        BudgetKind::ExecutionSeconds => pacer::BudgetKind::ExecutionSeconds,
        BudgetKind::Concurrent => pacer::BudgetKind::Concurrent,
    };
    pacer::Budget { kind, limit: budget.limit as f64, window: budget.window }
}

/// The notes about the pace of sinks in a store, the newest first.
pub async fn paces(
    store: &OpenStore,
    query: PaceQuery,
) -> Result<Vec<(NotedPace, Option<Pace>)>, StoreError> {
    let noted = store.paces(query).await?.into_iter();
    let with_pace = |noted| {
        let pace = decoded(&noted);
        (noted, pace)
    };
    Ok(noted.map(with_pace).collect())
}
