//! `tidegate pace`: how fast loads may go, why, which sinks hold relays up, and what the pacer would do elsewhere.

use super::outbox::status::troubled;
use crate::{
    app::App,
    args::pace::{PaceArgs, PaceCommand, SimulateArgs},
    exit::Exit,
    out, outbox,
    show::{pace, status},
    snapshot::toml_problem,
    store,
};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs;
use tidegate::{
    Access, load,
    pace::PaceQuery,
    pacer::scenario::{Scenario, ScenarioError},
};

/// The last loads that are shown.
const SHOWN: usize = 3;

/// Shows the pace of loads, or simulates one.
pub async fn run(app: &App, args: PaceArgs) -> Result<Exit> {
    match args.command {
        Some(PaceCommand::Simulate(args)) => simulate(app, args),
        None => show(app, args).await,
    }
}

async fn show(app: &App, args: PaceArgs) -> Result<Exit> {
    let store = app.address.open(Access::Existing).await?;
    let limit = if args.batch.is_some() { usize::MAX } else { SHOWN };
    let noted =
        load::paces(&store, PaceQuery { batch: args.batch, limit, ..PaceQuery::default() }).await?;
    let sinks = match args.batch {
        Some(_) => Vec::new(),
        None => outbox::open(app, None).await?.store.outbox().await?.sinks,
    };
    if noted.is_empty() && sinks.is_empty() {
        match args.batch {
            Some(batch) => bail!("batch {batch} is no load, or was never worked on"),
            None => bail!("there is no load in this store yet: see `tidegate load --help`"),
        }
    }
    if app.json {
        let loads = noted.iter().map(|(note, pace)| pace::json(note, pace.as_ref()));
        out::json(&loads.chain(sinks.iter().map(pace::of_relays)).collect::<Vec<_>>())?;
    } else {
        let mut texts = Vec::new();
        for (note, pace) in &noted {
            let status = store::status(&store, note.note.batch).await?;
            let progress = status::records(&status.progress, status.batch.runs);
            texts.push(pace::text(note, pace.as_ref(), &progress));
        }
        if !sinks.is_empty() {
            let lines = sinks.iter().map(|sink| format!("  {}\n", troubled(sink)));
            texts.push(format!("{}\n{}", out::strong("relays"), lines.collect::<String>()));
        }
        out::data(&texts.join("\n"))?;
    }
    Ok(Exit::Done)
}

fn simulate(app: &App, args: SimulateArgs) -> Result<Exit> {
    let shown = args.file.display();
    let text = fs::read_to_string(&args.file).with_context(|| format!("cannot read `{shown}`"))?;
    let scenario = text.parse::<Scenario>().map_err(|error| match error {
        ScenarioError::Syntax(error) => toml_problem(&text, &error),
        other => other.into(),
    });
    let mut scenario = scenario.with_context(|| format!("cannot use `{shown}`"))?;
    scenario.pacer.policy = args.policy.unwrap_or(scenario.pacer.policy);
    scenario.pacers = args.pacers.map_or(scenario.pacers, |pacers| pacers as usize);
    let report = scenario.run();
    let unmet = scenario.expect.check(&report).err().unwrap_or_default();
    if app.json {
        let mut value = serde_json::to_value(&report)?;
        if args.log {
            value["decisions"] = json!(report.decisions);
        }
        out::json(&value)?;
    } else {
        out::data(&format!("{}\n{report}\n", out::strong(&scenario.name)))?;
        let decisions = report.decisions.iter().filter(|_| args.log);
        out::data(&decisions.map(|decision| format!("{decision}\n")).collect::<String>())?;
    }
    unmet.iter().for_each(|unmet| out::note(&format!("{} {unmet}", out::alarm("unmet:"))));
    Ok(if unmet.is_empty() { Exit::Done } else { Exit::No })
}
