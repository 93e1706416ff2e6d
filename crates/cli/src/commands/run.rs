//! `tidegate run`: a batch from its submission to its aggregates, in one process.

use super::{
    finish::{self, Ended},
    observed::Observer,
    spec, work,
};
use crate::{
    app::App,
    args::RunArgs,
    exit::Exit,
    show::{number, progress::Follower, status},
    signals::{STOPPING, Signals},
    store,
};
use anyhow::{Result, anyhow, bail};
use std::time::Instant;
use tidegate::{
    Batch, BatchId, BatchState, OpenStore, Report, Until, Worker, WorkerOptions, Workloads,
    inspect::{BatchQuery, BatchStatus},
    limits::MAX_LISTED,
    submit::NewBatch,
};

/// Submits a batch, or takes up one that was begun before, and works on it until it is closed.
pub async fn run(app: &App, args: RunArgs) -> Result<Exit> {
    let workloads = spec::registry(&args.batch.exec)?;
    let wanted = spec::check(app, &args.batch, &workloads)?;
    let store = app.address.open_here().await?;
    app.say_if_new(&store);
    let (id, resumed) = take_up(&store, wanted).await?;
    let before = store::status(&store, id).await?;
    announce(app, &store, &before, resumed);

    let options =
        WorkerOptions { only: Some(id), until: Until::Idle, ..work::options(app, &args.work) };
    let signals = Signals::listen((!app.quiet).then_some(STOPPING))?;
    // What has succeeded once may succeed again: then failures are retried for as long as it takes.
    let most_alike = Observer::most_alike(&before.batch.workload);
    let hopeless = (before.progress.completed == 0).then(|| (signals.stop.clone(), most_alike));
    let observer = Observer::new(app.quiet, hopeless);
    let workloads = observer.observe(&workloads);
    let start = Instant::now();
    let work = work_on(app, &store, workloads, options, &before, &signals);
    let report = observer.watch(work).await?;
    let time = start.elapsed();
    let ended = Ended { store: &store, id, phases: report.phases, time, resumed };
    let exit = finish::run(app, ended, signals.code()).await?;
    match observer.given_up().filter(|_| signals.code().is_none()) {
        Some(reason) => bail!(
            "batch {id} was stopped: {reason} (`tidegate worker --batch {id}{}{}` would go on all the same)",
            finish::exec_flag(&before.batch.workload),
            app.address.flag(),
        ),
        None => Ok(exit),
    }
}

/// Finds a running batch that is the same as the wanted one, or submits that.
async fn take_up(store: &OpenStore, wanted: NewBatch) -> Result<(BatchId, bool)> {
    match find_running(store, &wanted).await? {
        Some(id) => Ok((id, true)),
        None => Ok((store.submit(wanted).await?.id, false)),
    }
}

async fn find_running(store: &OpenStore, wanted: &NewBatch) -> Result<Option<BatchId>> {
    let mut query =
        BatchQuery { state: Some(BatchState::Running), ..BatchQuery::newest(MAX_LISTED) };
    loop {
        let running = store.batches(query.clone()).await?;
        if let Some(found) = running.iter().find(|status| is_same(&status.batch, wanted)) {
            return Ok(Some(found.batch.id));
        }
        match running.last() {
            Some(last) => query.before = Some(last.batch.id),
            None => return Ok(None),
        }
    }
}

fn is_same(batch: &Batch, wanted: &NewBatch) -> bool {
    batch.workload == wanted.workload
        && batch.snapshot == wanted.snapshot.hash()
        && batch.seed == wanted.seed
        && batch.runs == wanted.runs
        && batch.keep == wanted.keep
        && batch.retry == wanted.retry
        && batch.timeout == wanted.timeout
}

fn announce(app: &App, store: &OpenStore, status: &BatchStatus, resumed: bool) {
    let batch = &status.batch;
    let kind = store::kind(store);
    app.say(&match resumed {
        true => format!(
            "resuming batch {}: {}{}",
            batch.id,
            status::progress(&status.progress, batch.runs),
            match status.progress.leased {
                0 => String::new(),
                leased => format!(
                    "; {} leased by another worker: if that one is gone, they are free when its \
                     lease expires",
                    number::runs(leased)
                ),
            }
        ),
        false => format!(
            "batch {}: {} of {}, seed {}, in {kind}",
            batch.id,
            number::runs(batch.runs),
            batch.workload,
            batch.seed
        ),
    });
}

/// Works on the batch and shows how it goes on.
async fn work_on(
    app: &App,
    store: &OpenStore,
    workloads: Workloads,
    options: WorkerOptions,
    status: &BatchStatus,
    signals: &Signals,
) -> Result<Report> {
    let worker = Worker::new(store.source(), workloads, options);
    let work = tokio::spawn(worker.run(signals.stop.clone()));
    let mut follower = Follower::new(app, store, status, false);
    tokio::select! {
        biased;
        report = work => match report {
            Ok(report) => Ok(report?),
            Err(panic) => Err(anyhow!("the worker ended by itself: {panic}")),
        },
        never = follower.forever() => match never {},
    }
}
