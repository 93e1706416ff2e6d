//! `tidegate drill relay`: messages are published and delivered while relays and the server fail.

mod publish;
mod readback;
mod relays;
mod report;
mod sink;
mod writers;

use super::{
    faults::{Disturbed, Notes, disturb_server},
    report::{Scene, aftermath, print},
    stage::Stage,
};
use crate::{app::App, args::drill::RelayDrillArgs, exit::Exit, show::number, signals::Signals};
use anyhow::{Context, Result};
use report::Report;
use std::time::{Duration, Instant};
use tidegate::{OpenStore, Stop};
use tidegate_drill::{history::History, recorder::Recorder};
use tokio::time::{interval, sleep_until};
use writers::Writers;

const STOPPING: &str = "stopping the drill; again to end at once";
const LOOK: Duration = Duration::from_millis(200);
/// How long nothing may change until the rest is given up.
const GIVE_UP: Duration = Duration::from_secs(20);

/// What the store says at the end.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    outstanding: u64,
    dead: u64,
}

/// Carries out a drill, prints its report, and says whether all laws hold.
pub async fn run(app: &App, args: &RelayDrillArgs) -> Result<Exit> {
    let signals = Signals::listen(Some(STOPPING))?;
    let stage = Stage::set(app, &args.faults, args.relays).await?;
    app.say(&format!(
        "drilling for {} s with {} relays on {}; logs are in {}",
        args.faults.seconds,
        args.relays,
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

async fn drill(app: &App, args: &RelayDrillArgs, stage: &Stage) -> Result<Report> {
    let flags = &args.faults;
    let recorder = Recorder::start(stage.start, sink::treatment(flags.seed, flags.fail_share))
        .context("cannot start the sink of the drill")?;
    let notes = Notes::default();
    let crew = relays::start(stage, args, &recorder.url())?;
    let mut relays = Disturbed::new(crew, stage, &notes);
    let writers = Writers::start(stage, flags.seed);
    let stop = Stop::new();
    let end = stage.start + Duration::from_secs(flags.seconds.into());
    let timer = async {
        sleep_until(end.into()).await;
        stop.stop();
        Ok(())
    };
    tokio::try_join!(
        relays.carry_out(&stage.plan.processes, &stop),
        disturb_server(stage, &notes, &stop),
        timer,
    )?;
    let attempts = writers.stop().await?;
    app.say("no more faults; waiting until all is delivered");
    let left = drain(&stage.store, &mut relays, &recorder, flags.lease.0).await?;
    let killed = relays.finish().await?;
    let sightings = recorder.stop().await;
    let stored = readback::stored(stage).await.context("cannot read what the server has")?;
    let noted = notes.lock().clone();
    let aftermath = aftermath(flags.lease.0);
    let mut scene = Scene::new(stage.kind, args.relays, flags);
    scene.faults = noted.made;
    (scene.ended_by_themselves, scene.could_not_start) = noted.ended_by_themselves(aftermath);
    let history = History {
        attempts,
        sightings,
        relay_faults: noted.processes,
        server_faults: noted.server,
        stored,
        aftermath,
    };
    let findings = tokio::task::spawn_blocking(move || history.judge()).await?;
    Ok(Report::new(scene, findings, left, killed))
}

/// Waits until nothing is outstanding, or nothing changes any more.
async fn drain(
    store: &OpenStore,
    relays: &mut Disturbed,
    recorder: &Recorder,
    lease: Duration,
) -> Result<Left> {
    let mut ticks = interval(LOOK);
    let (mut last, mut changed) = ((u64::MAX, 0), Instant::now());
    let mut left = Left::default();
    loop {
        ticks.tick().await;
        relays.look()?;
        if let Ok(status) = store.outbox().await {
            let sum =
                |of: fn(&tidegate::outbox::TopicStatus) -> u64| status.topics.iter().map(of).sum();
            left = Left { outstanding: sum(|it| it.outstanding), dead: sum(|it| it.dead) };
            if left.outstanding == 0 {
                return Ok(left);
            }
        }
        let now = (left.outstanding, recorder.count());
        if now != last {
            (last, changed) = (now, Instant::now());
        }
        if changed.elapsed() > GIVE_UP.max(lease * 3) {
            crate::out::note(&format!(
                "{} messages are still outstanding, and nothing changes",
                number::count(left.outstanding)
            ));
            return Ok(left);
        }
    }
}
