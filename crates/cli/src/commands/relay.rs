//! `tidegate relay`: delivers the messages of an outbox until it is stopped.

mod costs;
mod watch;

use crate::{
    app::App,
    args::outbox::RelayArgs,
    config::relay::{Making, plan},
    exit::Exit,
    out, outbox,
    show::{number, shadow},
    signals::Signals,
};
use anyhow::{Context, Result, bail};
use costs::{Costs, TELL_EVERY};
use serde_json::json;
use std::time::{Duration, Instant};
use tidegate::{
    adopted::Preset,
    outbox::TopicStatus,
    relay::{Counts, Plan, PlannedSink, Relay, RelayOptions, RelayReport},
    worker_id,
};
use watch::Patience;

const STOPPING: &str = "Stopping after the deliveries in progress. Press Ctrl-C again to stop now.";

/// Delivers until stopped, or until nothing is left.
pub async fn run(app: &App, args: RelayArgs) -> Result<Exit> {
    if args.shadow {
        return look(app, args.table.preset).await;
    }
    let making =
        Making { protected: &app.protected, preset: args.table.preset, store: app.address.url() };
    let plan = plan(&app.config, args.to.as_deref(), making)?;
    refuse_files(&plan).await?;
    let opened = outbox::open(app, args.table.preset).await?;
    let habits = opened.store.outbox_capabilities().habits;
    let defaults = RelayOptions::new(worker_id());
    let config = &app.config;
    let options = RelayOptions {
        drain: args.drain,
        lease: args.lease.or(config.lease).map_or(habits.lease, |span| span.0),
        grace: args.grace.or(config.grace).map_or(defaults.grace, |span| span.0),
        poll: args.poll.or(config.poll).map_or(habits.poll, |span| span.0),
        keep: config.outbox.keep.map(|span| span.0),
        stalled_after: args
            .stalled_after
            .or(config.stalled_after)
            .map_or(defaults.stalled_after, |span| span.0),
        ..defaults
    };
    tracing::info!(
        "relay {} from {} to {}",
        options.relay.0,
        opened.name,
        plan.sinks.iter().map(|sink| sink.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    opened.remarks().iter().for_each(|it| tracing::info!("{it}"));
    let signals = Signals::listen((!app.quiet).then_some(STOPPING))?;
    let is_stdout = |sink: &PlannedSink| sink.sink.capabilities().name == "stdout";
    let stdout = plan.sinks.iter().position(is_stdout);
    let store = opened.store.clone();
    let relay = Relay::new(opened.store, plan, options)?;
    let start = Instant::now();
    let (own, watched) = (opened.own, relay.watch());
    let used = || {
        let costs = own.as_ref().and_then(|own| own.costs());
        costs.map(|it| Costs::new(it, &watched.borrow().counts))
    };
    let patience = Patience::new(args.give_up_after.map(|span| span.0));
    let report = tokio::select! {
        biased;
        report = relay.run(signals.stop.clone()) => report?,
        never = patience.watch(&relay, &signals.stop) => match never {},
        never = watch::follow(relay.watch()) => match never {},
        never = watch::tell_troubles(&relay) => match never {},
        never = relay.check_sinks() => match never {},
        never = costs::tell(TELL_EVERY, used, |line| tracing::info!("{line}")) => match never {},
        never = watch::stop_unread(relay.watch(), stdout, &signals.stop) => match never {},
    };
    let costs = own.as_ref().and_then(|own| own.costs());
    say_goodbye(app, &report, start.elapsed(), costs.map(|it| Costs::new(it, &report.counts)))?;
    if args.drain && signals.code().is_none() {
        left(&store.outbox().await?.topics).into_iter().for_each(|line| app.say(&line));
    }
    patience.given_up().into_iter().for_each(|line| app.say(&line));
    let failed = patience.given_up().is_some() || report.counts.dead > 0 || !report.gone.is_empty();
    let ended = if args.drain && failed { Exit::Failures } else { Exit::Done };
    Ok(signals.code().map_or(ended, Exit::Stopped))
}

/// Refuses files that can never be written, before anything is leased.
async fn refuse_files(plan: &Plan) -> Result<()> {
    let files = plan.sinks.iter().filter(|sink| sink.sink.capabilities().name == "file");
    for planned in files {
        let check = planned.sink.check().await;
        check.with_context(|| format!("cannot use the sink {}", planned.name))?;
    }
    Ok(())
}

/// Reports what a relay would find, and delivers and writes nothing.
async fn look(app: &App, preset: Option<Preset>) -> Result<Exit> {
    if app.address.is_dynamodb() {
        bail!("--shadow looks at tables in PostgreSQL: on DynamoDB see `tidegate doctor`");
    }
    let table = outbox::table(app, preset).await?.context(
        "--shadow is for a table that was there before: name it by --preset, or by [outbox] in \
         tidegate.toml",
    )?;
    let report = table.shadow().await?;
    match app.json {
        true => out::json(&report)?,
        false => out::data(&shadow::text(&report))?,
    }
    Ok(Exit::Done)
}

fn say_goodbye(
    app: &App,
    report: &RelayReport,
    time: Duration,
    costs: Option<Costs>,
) -> Result<()> {
    let counts = &report.counts;
    if app.json {
        let sent: serde_json::Map<_, _> =
            report.sent.iter().map(|(name, sent)| (name.clone(), json!(sent))).collect();
        let gone: serde_json::Map<_, _> =
            report.gone.iter().map(|(name, reason)| (name.clone(), json!(reason))).collect();
        let seconds = time.as_secs_f64();
        let mut told = json!({ "counts": counts, "sent": sent, "gone": gone, "seconds": seconds });
        if let Some(costs) = &costs {
            told["costs"] = costs.json();
        }
        out::json(&told)?;
    }
    app.say(&told(counts));
    costs.iter().for_each(|costs| app.say(&costs.text()));
    for (name, reason) in &report.gone {
        app.say(&format!("{name}: {reason}; its messages wait: remove its route, or start again"));
    }
    Ok(())
}

/// What a drain left, because it cannot be delivered without somebody's help.
fn left(topics: &[TopicStatus]) -> Option<String> {
    let sum = |of: fn(&TopicStatus) -> u64| topics.iter().map(of).sum::<u64>();
    let kinds = [
        (sum(|topic| topic.unrouted), "without a route: add [[routes]] for their topics"),
        (sum(|topic| topic.waiting), "behind another that is stuck: see `tidegate outbox list`"),
    ];
    let left = kinds.iter().filter(|(messages, _)| *messages > 0);
    let left: Vec<String> =
        left.map(|(messages, what)| format!("{} {what}", number::count(*messages))).collect();
    (!left.is_empty()).then(|| format!("left: {}", left.join("; ")))
}

/// What became of messages, in words.
fn told(counts: &Counts) -> String {
    let mut text = format!("{} delivered", number::count(counts.delivered));
    for (number, what) in [
        (counts.coalesced, "coalesced"),
        (counts.retried, "retries"),
        (counts.dead, "dead (see `tidegate outbox dead`)"),
        (counts.unrouted, "without a route (see `tidegate outbox list`)"),
    ] {
        if number > 0 {
            text += &format!(", {} {what}", number::count(number));
        }
    }
    text
}
