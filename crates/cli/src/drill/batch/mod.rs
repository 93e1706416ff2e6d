//! `tidegate drill batch`: batches are worked on while workers and the server fail.

mod judge;
mod report;
mod undisturbed;
mod watch;
mod workers;

use super::{
    faults::{Disturbed, Notes, disturb_server},
    report::{Scene, aftermath, print},
    stage::Stage,
};
use crate::{app::App, args::drill::BatchDrillArgs, exit::Exit, signals::Signals};
use anyhow::{Context, Result};
use judge::Findings;
use report::Report;
use std::time::{Duration, Instant};
use tidegate::Stop;
use tokio::time::sleep_until;
use watch::{Look, Watch};

const STOPPING: &str = "stopping the drill; again to end at once";
/// How long nothing may change until the rest is given up.
const GIVE_UP: Duration = Duration::from_secs(20);

/// Carries out a drill, prints its report, and says whether all laws hold.
pub async fn run(app: &App, args: &BatchDrillArgs) -> Result<Exit> {
    let signals = Signals::listen(Some(STOPPING))?;
    let stage = Stage::set(app, &args.faults, args.workers).await?;
    app.say(&format!(
        "drilling for {} s with {} workers on {}; logs are in {}",
        args.faults.seconds,
        args.workers,
        stage.kind,
        stage.directory.display()
    ));
    let outcome = tokio::select! {
        outcome = drill(app, args, &stage) => Some(outcome),
        () = signals.stop.stopped() => None,
    };
    let cleared = stage.clear().await;
    let Some(report) = outcome else {
        return Ok(signals.code().map_or(Exit::Done, Exit::Stopped));
    };
    let report = report?;
    cleared?;
    print(app, &report, &report.broken, &report.findings.examples)
}

async fn drill(app: &App, args: &BatchDrillArgs, stage: &Stage) -> Result<Report> {
    let flags = &args.faults;
    let notes = Notes::default();
    let crew = workers::start(stage, args)?;
    let mut workers = Disturbed::new(crew, stage, &notes);
    let mut watch = Watch::new(stage, flags);
    let stop = Stop::new();
    let end = stage.start + Duration::from_secs(flags.seconds.into());
    let timer = async {
        sleep_until(end.into()).await;
        stop.stop();
        Ok(())
    };
    tokio::try_join!(
        workers.carry_out(&stage.plan.processes, &stop),
        disturb_server(stage, &notes, &stop),
        watch.submit(&stop),
        timer,
    )?;
    app.say("no more faults; waiting until all batches are completed");
    let running = finish(&mut watch, &mut workers, flags.lease.0).await?;
    let killed = workers.finish().await?;
    let noted = notes.lock().clone();
    let mut findings = Findings::default();
    judge::all(stage, &watch.submitted, &noted.server, &mut findings).await?;
    findings.stall_ms = judge::stall(&watch.looks, &noted.server);
    let mut scene = Scene::new(stage.kind, args.workers, flags);
    scene.faults = noted.made;
    (scene.ended_by_themselves, scene.could_not_start) =
        noted.ended_by_themselves(aftermath(flags.lease.0));
    Ok(Report::new(scene, findings, running, killed))
}

/// Waits until no batch is running, or nothing changes any more. Returns how many are still running.
async fn finish(watch: &mut Watch<'_>, workers: &mut Disturbed, lease: Duration) -> Result<u64> {
    let (mut last, mut changed) = (None::<Look>, Instant::now());
    loop {
        watch.pause().await;
        workers.look().context("cannot look after the processes of the drill")?;
        if let Some(look) = watch.look().await {
            if look.running == 0 {
                return Ok(0);
            }
            if last.is_none_or(|last| last.completed != look.completed) {
                changed = Instant::now();
            }
            last = Some(look);
        }
        if changed.elapsed() > GIVE_UP.max(lease * 3) {
            return Ok(last.map_or(0, |look| look.running));
        }
    }
}
