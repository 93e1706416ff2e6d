//! `tidegate worker`: works on the batches of a store, until it is stopped or nothing is left.

use super::{observed::Observer, spec, work};
use crate::{
    app::App,
    args::WorkerArgs,
    exit::Exit,
    out,
    show::number,
    signals::{STOPPING, Signals},
    store,
};
use anyhow::Result;
use serde_json::json;
use tidegate::{
    Access, BatchState, OpenStore, Report, Until, Worker, WorkerOptions, Workloads,
    inspect::BatchQuery, limits::MAX_LISTED,
};

/// Works until stopped, or until idle.
pub async fn run(app: &App, args: WorkerArgs) -> Result<Exit> {
    let workloads = spec::registry(&args.exec)?;
    let store = app.address.open(Access::Existing).await?;
    if let Some(id) = args.batch {
        store::status(&store, id).await?;
    }
    let options = WorkerOptions {
        only: args.batch,
        until: if args.until_idle { Until::Idle } else { Until::Stopped },
        ..work::options(app, &args.work)
    };
    warn_of_unknown(app, &store, &workloads).await?;
    let worker = options.worker.clone();
    tracing::info!(
        "worker {} with {} threads on {}",
        worker.0,
        options.threads,
        store::kind(&store)
    );

    let observer = Observer::new(app.quiet, None);
    let workloads = observer.observe(&workloads);
    let signals = Signals::listen((!app.quiet).then_some(STOPPING))?;
    let work = Worker::new(store.source(), workloads, options).run(signals.stop.clone());
    let report = observer.watch(work).await?;
    say_goodbye(app, &worker.0, &report)?;
    Ok(signals.code().map_or(Exit::Done, Exit::Stopped))
}

/// Names running batches that this worker will not touch: they would wait in silence.
async fn warn_of_unknown(app: &App, store: &OpenStore, workloads: &Workloads) -> Result<()> {
    let query = BatchQuery { state: Some(BatchState::Running), ..BatchQuery::newest(MAX_LISTED) };
    for status in store.batches(query).await? {
        let (id, workload) = (status.batch.id, status.batch.workload);
        if workloads.get(&workload).is_some() {
            continue;
        }
        let hint = match workload.strip_prefix("exec:") {
            Some(_) => "; allow its program with --exec",
            None => "",
        };
        app.say(&format!("batch {id} is left to others: it needs `{workload}`{hint}"));
    }
    Ok(())
}

fn say_goodbye(app: &App, worker: &str, report: &Report) -> Result<()> {
    let closed: Vec<_> = report
        .finalized
        .iter()
        .map(|closed| json!({ "batch": closed.batch, "state": closed.state }))
        .collect();
    if app.json {
        out::json(&json!({
            "worker": worker,
            "runs": report.phases.settled_runs,
            "seconds": report.phases.wall_ms / 1e3,
            "closed": closed,
            "phases": report.phases,
            "advice": report.phases.advice(),
        }))?;
    }
    tracing::info!("{}", report.phases);
    app.say(&format!(
        "settled {}, closed {} {}",
        number::runs(report.phases.settled_runs),
        closed.len(),
        if closed.len() == 1 { "batch" } else { "batches" }
    ));
    Ok(())
}
