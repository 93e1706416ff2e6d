//! `tidegate workload`: what can be run.

use super::spec;
use crate::{app::App, args::WorkloadCommand, exit::Exit, out, show::table};
use anyhow::Result;
use serde_json::json;
use tidegate::{AnyWorkload, workloads::builtin};

/// Lists workloads, or prints an example.
pub fn run(app: &App, command: WorkloadCommand) -> Result<Exit> {
    match command {
        WorkloadCommand::List => list(app)?,
        WorkloadCommand::Show { name } => show(app, &name)?,
    }
    Ok(Exit::Done)
}

fn list(app: &App) -> Result<()> {
    let workloads = builtin();
    if app.json {
        let entry = |w: &dyn AnyWorkload| json!({ "name": w.name(), "about": w.about() });
        let entries: Vec<_> = workloads.iter().map(|workload| entry(&**workload)).collect();
        return Ok(out::json(&entries)?);
    }
    let row = |w: &dyn AnyWorkload| [w.name().to_owned(), w.about().to_owned()];
    let mut rows: Vec<_> = workloads.iter().map(|workload| row(&**workload)).collect();
    let any = ["--exec CMD", "any program: one line of JSON in, one line out, per run"];
    rows.push(any.map(str::to_owned));
    Ok(out::data(&table::table(["name", "about"], 2, rows))?)
}

fn show(app: &App, name: &str) -> Result<()> {
    let workload = spec::find(&builtin(), name)?;
    if app.json {
        let example = crate::snapshot::example(&*workload)?;
        return Ok(out::json(&json!({
            "name": workload.name(),
            "about": workload.about(),
            "snapshot": example,
        }))?);
    }
    if workload.example().is_empty() {
        app.say(&format!("`{name}` needs no snapshot"));
    }
    Ok(out::data(workload.example())?)
}
