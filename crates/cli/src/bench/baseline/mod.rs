//! What Tidegate replaces: one row per run, as the systems have it that it grew out of. Lives here
//! only, to be measured against.
//!
//! Both modes get the best that this design allows: small rows, narrow keys, prepared statements,
//! nothing else on the connection.

mod postgres;
mod sqlite;

pub use postgres::REMOVE;

use super::{meter::Meter, report::Mode};
use anyhow::{Context, anyhow};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate::{Run, Snapshot, Workloads, workload::Prepared};
use tokio::task::JoinSet;

/// Rows that `rows` claims at once.
const CLAIM: i64 = 20;
/// Results that `rows` writes at once.
const FLUSH: usize = 100;
/// `per-run` ends after this time: on a slow disk a thousand runs take a minute.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which way of working with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Five statements for each run, each committed by itself.
    PerRun,
    /// Claims and results in groups.
    Rows,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::PerRun => "per-run",
            Kind::Rows => "rows",
        }
    }

    /// Enough for a stable rate.
    fn runs(self) -> u64 {
        match self {
            Kind::PerRun => 5_000,
            Kind::Rows => 20_000,
        }
    }
}

/// Two tables: runs with a status each, and their results.
trait Table {
    type Session: Session + 'static;

    /// Adds runs `0..runs`, all of them pending.
    async fn enqueue(&self, runs: u64) -> anyhow::Result<()>;

    /// A connection for one of several workers.
    async fn session(&self) -> anyhow::Result<Self::Session>;

    /// Removes both tables.
    async fn remove(self) -> anyhow::Result<()>;
}

/// One worker's connection. Every method is one transaction; all but the last are one statement.
trait Session: Send {
    fn load(&mut self, id: i64) -> impl Future<Output = anyhow::Result<()>> + Send;
    fn claim(&mut self, id: i64) -> impl Future<Output = anyhow::Result<()>> + Send;
    fn delete_results(&mut self, id: i64) -> impl Future<Output = anyhow::Result<()>> + Send;
    fn insert_result(
        &mut self,
        id: i64,
        result: &str,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;
    fn complete(&mut self, id: i64) -> impl Future<Output = anyhow::Result<()>> + Send;
    fn claim_rows(&mut self, most: i64) -> impl Future<Output = anyhow::Result<Vec<i64>>> + Send;
    fn flush(&mut self, finished: &Finished) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Results that wait to be written, by run.
#[derive(Default)]
struct Finished {
    ids: Vec<i64>,
    results: Vec<String>,
}

/// The same work as in a batch of Tidegate.
#[derive(Clone)]
pub struct Compute(Arc<dyn Prepared>);

impl Compute {
    pub fn new(workloads: &Workloads, name: &str) -> anyhow::Result<Self> {
        let workload =
            workloads.get(name).with_context(|| format!("there is no workload `{name}`"))?;
        Ok(Self(workload.prepare(&Snapshot::freeze(&serde_json::json!({})))?))
    }

    fn result(&self, id: i64) -> anyhow::Result<String> {
        let mut result = Vec::new();
        self.0.run(&mut Run::new(1, id as u64), &mut result)?;
        Ok(String::from_utf8(result)?)
    }
}

/// What one worker did.
#[derive(Clone, Copy, Default)]
struct Done {
    runs: u64,
    statements: u64,
    transactions: u64,
}

/// Measures one of the modes on tables of its own, which are gone afterwards.
pub async fn measure(
    kind: Kind,
    meter: &Meter,
    compute: &Compute,
    threads: usize,
) -> anyhow::Result<Mode> {
    match meter {
        Meter::Clock => on(sqlite::Tables::create()?, kind, meter, compute, threads).await,
        Meter::Server { url, .. } => {
            on(postgres::Tables::create(url).await?, kind, meter, compute, threads).await
        }
    }
}

async fn on<T: Table>(
    table: T,
    kind: Kind,
    meter: &Meter,
    compute: &Compute,
    threads: usize,
) -> anyhow::Result<Mode> {
    let enqueue = Instant::now();
    table.enqueue(kind.runs()).await?;
    let enqueue = enqueue.elapsed();
    let mut sessions = Vec::new();
    for _ in 0..threads {
        sessions.push(table.session().await?);
    }
    let start = meter.start().await?;
    let done = work(sessions, kind, compute).await?;
    let cost = meter.stop(start).await?;
    table.remove().await?;

    let transactions = cost.transactions.unwrap_or(done.transactions);
    let mode = Mode::new(kind.name(), done.runs, &cost).doing(done.statements, Some(transactions));
    Ok(mode.after_enqueuing(enqueue))
}

async fn work<S: Session + 'static>(
    sessions: Vec<S>,
    kind: Kind,
    compute: &Compute,
) -> anyhow::Result<Done> {
    let step = sessions.len();
    let mut workers = JoinSet::new();
    for (first, session) in sessions.into_iter().enumerate() {
        let compute = compute.clone();
        workers.spawn(async move {
            match kind {
                Kind::PerRun => {
                    let ids = (first as i64..kind.runs() as i64).step_by(step);
                    per_run(session, ids, &compute).await
                }
                Kind::Rows => rows(session, &compute).await,
            }
        });
    }
    let mut all = Done::default();
    while let Some(ended) = workers.join_next().await {
        let done = ended.map_err(|error| anyhow!("a worker of the bench ended: {error}"))??;
        all.runs += done.runs;
        all.statements += done.statements;
        all.transactions += done.transactions;
    }
    Ok(all)
}

async fn per_run(
    mut session: impl Session,
    ids: impl Iterator<Item = i64>,
    compute: &Compute,
) -> anyhow::Result<Done> {
    let start = Instant::now();
    let mut runs = 0;
    for id in ids.take_while(|_| start.elapsed() < PATIENCE) {
        session.load(id).await?;
        session.claim(id).await?;
        let result = compute.result(id)?;
        session.delete_results(id).await?;
        session.insert_result(id, &result).await?;
        session.complete(id).await?;
        runs += 1;
    }
    Ok(Done { runs, statements: 5 * runs, transactions: 4 * runs })
}

async fn rows(mut session: impl Session, compute: &Compute) -> anyhow::Result<Done> {
    let mut done = Done::default();
    let mut finished = Finished::default();
    loop {
        let ids = session.claim_rows(CLAIM).await?;
        done.statements += 1;
        done.transactions += 1;
        let last = ids.is_empty();
        for id in ids {
            finished.results.push(compute.result(id)?);
            finished.ids.push(id);
        }
        if finished.ids.len() >= FLUSH || last {
            session.flush(&finished).await?;
            done.runs += finished.ids.len() as u64;
            done.statements += 2;
            done.transactions += 1;
            finished = Finished::default();
        }
        if last {
            return Ok(done);
        }
    }
}
