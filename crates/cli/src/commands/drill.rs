//! `tidegate drill`: relays and workers under faults; a service that throttles, to try things on.

use crate::{
    app::App,
    args::drill::{DrillCommand, ServiceArgs},
    drill,
    exit::Exit,
    out,
    show::number,
    signals::Signals,
    snapshot::toml_problem,
};
use anyhow::{Context, Result};
use serde_json::json;
use std::{fs, net::Ipv4Addr, path::Path};
use tidegate_drill::{Concurrency, Counters, Hint, Rate, Service, Spec};

/// Runs a drill.
pub async fn run(app: &App, command: DrillCommand) -> Result<Exit> {
    match command {
        DrillCommand::Relay(args) => drill::relay::run(app, &args).await,
        DrillCommand::Batch(args) => drill::batch::run(app, &args).await,
        DrillCommand::Service(args) => serve(app, args).await,
    }
}

async fn serve(app: &App, args: ServiceArgs) -> Result<Exit> {
    let spec = spec(&args)?;
    let signals = Signals::listen(None)?;
    let service = Service::start(spec, (Ipv4Addr::LOCALHOST, args.port).into())
        .with_context(|| format!("cannot listen on port {}", args.port))?;
    let url = service.url();
    match app.json {
        true => out::json(&json!({ "url": format!("{url}/records") }))?,
        false => out::data(&format!("{url}/records\n"))?,
    }
    app.say(&format!("listening; counters at {url}/counters; Ctrl-C ends it"));
    signals.stop.stopped().await;
    let counters = service.counters();
    service.stop().await;
    match app.json {
        true => out::json(&counters)?,
        false => out::data(&text(&counters))?,
    }
    Ok(Exit::Done)
}

fn spec(args: &ServiceArgs) -> Result<Spec> {
    let mut spec = args.spec.as_deref().map_or_else(|| Ok(Spec::default()), read)?;
    if let Some(delay) = args.delay {
        spec.delay = delay.0;
    }
    if let Some(limit) = args.concurrency {
        spec.concurrency = Some(Concurrency { limit: limit as usize });
    }
    if let Some(per_second) = args.rate {
        spec.rate = Some(Rate { per_second });
    }
    if let Some(parallelism) = args.hint {
        spec.hint = Some(Hint { parallelism });
    }
    spec.retry_after = args.retry_after.map(|span| span.0).or(spec.retry_after);
    spec.max_group = args.max_group.or(spec.max_group);
    spec.per_record_answers |= args.per_record_answers;
    spec.fail_share = args.fail_share.unwrap_or(spec.fail_share);
    spec.check()?;
    Ok(spec)
}

fn read(path: &Path) -> Result<Spec> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{shown}`"))?;
    let spec = toml::from_str(&text).map_err(|error| toml_problem(&text, &error));
    spec.with_context(|| format!("cannot use `{shown}`"))
}

fn text(counters: &Counters) -> String {
    let lines = [
        ("requests", counters.requests),
        ("accepted", counters.accepted),
        ("throttled", counters.throttled.total),
        ("inside a Retry-After", counters.inside_retry_after),
        ("failed", counters.failed),
        ("records", counters.records),
        ("duplicates", counters.duplicates),
        ("refused records", counters.refused_records),
        ("most in flight", counters.max_in_flight),
        ("connections", counters.connections),
    ];
    let line = |(name, value): (&str, u64)| format!("{name:<22}{:>14}\n", number::count(value));
    lines.map(line).concat()
}
