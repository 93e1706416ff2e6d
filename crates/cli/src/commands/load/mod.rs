//! `tidegate load`: a file of records into a service that throttles.

mod errors;
mod finish;

use super::work;
use crate::{
    app::App,
    args::{WorkFlags, load::LoadArgs},
    exit::Exit,
    out,
    show::{
        load::{Follower, leased},
        number,
    },
    signals::Signals,
    sinks::{self, OpenSink},
};
use anyhow::{Context, Result, bail};
use errors::ErrorsFile;
use finish::Ended;
use std::{
    convert::Infallible,
    io,
    path::Path,
    time::{Duration, Instant},
};
use tidegate::{
    Access, BatchState, OpenStore, Stop,
    load::{Load, LoadReport, LoadSpec, TakenUp},
    records::{Input, Options, Records},
    relay::STALLED_AFTER,
};

/// What is said to the first Ctrl-C.
const STOPPING: &str = "Stopping after the requests in flight. Press Ctrl-C again to stop now.";
const DEFAULT_ATTEMPTS: u32 = 5;
/// How often it is looked whether something is taken.
const LOOK: Duration = Duration::from_millis(250);

/// Loads a file, or goes on with a load that was begun before.
pub async fn run(app: &App, args: LoadArgs) -> Result<Exit> {
    let in_flags = |error| sinks::in_flags(&args.to, error);
    let sink = sinks::open(app, &args.to, &args.sink, &args.pace).map_err(in_flags)?;
    let errors = args.errors.as_deref();
    let errors = errors.map(|path| ErrorsFile::new(path, &app.protected)).transpose()?;
    let records = scan(app, &args)?;
    report_malformed(app, &records, args.strict)?;
    if args.dry_run {
        sink.sink.check().await.with_context(|| unreachable(&sink.name)).map_err(in_flags)?;
        return dry_run(app, &records, &sink);
    }
    let max_attempts = args.max_attempts.or(app.config.max_attempts).unwrap_or(DEFAULT_ATTEMPTS);
    let OpenSink { sink, name, place, group, pacer } = sink;
    let (to, reached) = (name.clone(), sink.clone());
    let load = Load::new(records, sink, LoadSpec { to, place, group, pacer, max_attempts })?;
    // A load that cannot begin makes no store.
    if app.address.open(Access::Existing).await.is_err() {
        reached.check().await.with_context(|| unreachable(&name)).map_err(in_flags)?;
    }
    let store = app.address.open_here().await?;
    app.say_if_new(&store);
    load.check(&store).await.with_context(|| unreachable(&name)).map_err(in_flags)?;
    let taken_up = load.take_up(&store, args.again).await?;
    announce(app, &load, &taken_up, &name);
    let signals = Signals::listen((!app.quiet).then_some(STOPPING))?;
    let start = Instant::now();
    let mut patience = Patience {
        stalled_after: args
            .stalled_after
            .or(app.config.stalled_after)
            .map_or(STALLED_AFTER, |it| it.0),
        give_up_after: args.give_up_after.map(|it| it.0),
        gave_up: false,
    };
    let report = match taken_up.status.state {
        BatchState::Running => {
            Some(work_on(app, &store, &load, &taken_up, &signals, &mut patience).await?)
        }
        _ => None,
    };
    let (time, gave_up) = (start.elapsed(), patience.gave_up);
    let ended = Ended { store: &store, load: &load, taken_up, report, time, gave_up };
    ended.finish(app, errors, signals.code()).await
}

fn unreachable(name: &str) -> String {
    format!("cannot reach {name}")
}

/// Reads the file once: counts its records and checks each.
fn scan(app: &App, args: &LoadArgs) -> Result<Records> {
    let options = Options { format: args.format, ..Options::default() };
    let (input, size) = match args.file.as_os_str() == "-" {
        true => (Input::Stdin(Box::new(io::stdin())), None),
        false => (Input::Path(args.file.clone()), size(&args.file)),
    };
    let bar = app.draws().then(|| out::scanning(size));
    let mut progress = |bytes| bar.iter().for_each(|bar| bar.set_position(bytes));
    let records = Records::open(input, &options, &mut progress);
    bar.iter().for_each(indicatif::ProgressBar::finish_and_clear);
    Ok(records?)
}

fn size(path: &Path) -> Option<u64> {
    path.metadata().ok().map(|metadata| metadata.len())
}

fn report_malformed(app: &App, records: &Records, strict: bool) -> Result<()> {
    let malformed = records.malformed();
    let Some(first) = malformed.first.first() else { return Ok(()) };
    let (name, line, reason) = (records.name(), first.line, &first.reason);
    let more = match malformed.count - 1 {
        0 => String::new(),
        more => format!(", and {} more like it", number::count(more)),
    };
    if strict {
        bail!("{name}, line {line}: {reason}{more}; nothing was sent");
    }
    if malformed.count == records.len() {
        bail!("{name} has no record that can be sent: line {line}: {reason}{more}");
    }
    app.say(&format!("{name}, line {line}: {reason}{more}; malformed records are not sent"));
    Ok(())
}

fn dry_run(app: &App, records: &Records, sink: &OpenSink) -> Result<Exit> {
    let malformed = records.malformed().count;
    let capabilities = sink.sink.capabilities();
    if app.json {
        out::json(&serde_json::json!({
            "file": records.name(),
            "format": records.format().name(),
            "records": records.len(),
            "malformed": malformed,
            "bytes": records.bytes(),
            "to": sink.name,
            "sink": capabilities.name,
            "connections": capabilities.connections,
            "group": sink.group.min(capabilities.max_group),
        }))?;
    } else {
        out::data(&format!(
            "{}: {} of {}, {} malformed\n{}: reached on {} as {}, up to {} per request\n",
            records.name(),
            number::records(records.len()),
            records.format(),
            number::count(malformed),
            sink.name,
            capabilities.connections.join(", "),
            capabilities.name,
            number::count(sink.group.min(capabilities.max_group) as u64),
        ))?;
    }
    app.say("nothing was sent");
    Ok(if malformed == 0 { Exit::Done } else { Exit::Failures })
}

fn announce(app: &App, load: &Load, taken_up: &TakenUp, to: &str) {
    let status = &taken_up.status;
    let (id, name) = (status.batch.id, load.records().name());
    let done = status.progress.completed + status.progress.dead;
    app.say(&match (taken_up.resumed, status.state) {
        (false, _) => {
            let records = number::records(status.batch.runs);
            format!("load {id}: {records} of {name} to {to}")
        }
        (true, BatchState::Running) => format!(
            "going on with load {id}: {} of {} are settled{}",
            number::count(done),
            number::records(status.batch.runs),
            match status.progress.leased {
                0 => String::new(),
                _ => format!(", {}", leased(status)),
            }
        ),
        (true, _) => format!("{name} was loaded before, as load {id}: --again loads it again"),
    });
}

/// Delivers, and shows how it goes on.
async fn work_on(
    app: &App,
    store: &OpenStore,
    load: &Load,
    taken_up: &TakenUp,
    signals: &Signals,
    patience: &mut Patience,
) -> Result<LoadReport> {
    let options = work::options(app, &WorkFlags::default());
    let batch = taken_up.status.batch.id;
    let work = load.run(store, batch, options, signals.stop.clone());
    let mut follower = Follower::new(app, store, load, &taken_up.status);
    let report = tokio::select! {
        biased;
        report = work => report,
        never = follower.forever() => match never {},
        never = patience.watch(load, &signals.stop) => match never {},
    };
    drop(follower);
    report.with_context(|| {
        format!("load {batch} stopped (what was settled stays; the same command goes on)")
    })
}

/// How long a load waits for a service that puts everything off.
struct Patience {
    stalled_after: Duration,
    give_up_after: Option<Duration>,
    gave_up: bool,
}

impl Patience {
    /// Says when nothing was taken for long, and ends the load if it was told to.
    async fn watch(&mut self, load: &Load, stop: &Stop) -> Infallible {
        let mut told = false;
        loop {
            tokio::time::sleep(LOOK).await;
            let Some((reason, time)) = load.stall() else {
                told = false;
                continue;
            };
            let gives_up = self.give_up_after.is_some_and(|most| time >= most);
            let stalled = format!("no record was taken for {}: {reason}", number::span(time));
            if gives_up && !stop.is_stopped() {
                out::note(&format!("{stalled}; giving up"));
                self.gave_up = true;
                stop.stop();
            } else if !gives_up && time >= self.stalled_after && !told {
                let then = match self.give_up_after {
                    Some(_) => "going on",
                    None => "going on; --give-up-after TIME ends a load like this",
                };
                out::note(&format!("{stalled}; {then}"));
                told = true;
            }
        }
    }
}

/// Records per second, over a time.
pub fn per_second(records: u64, time: Duration) -> f64 {
    records as f64 / time.as_secs_f64().max(1e-9)
}
