//! `tidegate pace simulate`: a policy on one simulated service.

use crate::{
    app::App, args::pace::SimulateArgs, exit::Exit, out, replaced::Replaced, show::svg,
    snapshot::toml_problem,
};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::{fs, path::Path};
use tidegate::pacer::scenario::{AnyPolicy, Scenario, ScenarioError};

/// Runs a scenario, and says what it expects in vain.
pub fn run(app: &App, args: SimulateArgs) -> Result<Exit> {
    let mut scenario = read(&args.file)?;
    let policy = args.policy.unwrap_or(AnyPolicy::Pacer(scenario.pacer.policy));
    scenario.pacers = args.pacers.map_or(scenario.pacers, |pacers| pacers as usize);
    let plot = args.plot.as_deref().map(|path| begin(app, path)).transpose()?;
    let (report, trace) = scenario.trace_as(policy);
    if let Some(mut plot) = plot {
        plot.write(&svg::plot(&scenario.name, &policy.to_string(), &trace))?;
        plot.finish()?;
    }
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

fn read(file: &Path) -> Result<Scenario> {
    let shown = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{shown}`"))?;
    let scenario = text.parse::<Scenario>().map_err(|error| match error {
        ScenarioError::Syntax(error) => toml_problem(&text, &error),
        other => other.into(),
    });
    scenario.with_context(|| format!("cannot use `{shown}`"))
}

/// Begins the file before the work: a place that cannot be written to is refused at once.
fn begin(app: &App, path: &Path) -> Result<Replaced> {
    if let Some(what) = app.protected.find(path) {
        bail!("`{}` is {what}: write the plot to another file", path.display());
    }
    Replaced::new(path)
}
