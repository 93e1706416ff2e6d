//! `tidegate pace tournament`: policies on services that are drawn at random.

use crate::{app::App, args::pace::TournamentArgs, exit::Exit, out, replaced::Replaced};
use anyhow::{Context, Result, bail};
use std::{fs, path::Path, thread};
use tidegate::pacer::scenario::{
    AnyPolicy,
    tournament::{Results, Tournament},
};

/// Runs policies on drawn services and compares them.
pub fn run(app: &App, args: &TournamentArgs) -> Result<Exit> {
    let TournamentArgs { services, seed, family, .. } = *args;
    if let Some(directory) = &args.worst {
        let problem = || format!("cannot make the directory `{}`", directory.display());
        fs::create_dir_all(directory).with_context(problem)?;
    }
    let policies = match args.policies.as_slice() {
        [] => &AnyPolicy::COMPARED,
        named => named,
    };
    let threads = match args.threads {
        Some(threads) => threads as usize,
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let results = Tournament { family, services, seed }.run(policies, threads);
    match app.json {
        true => out::json(&results)?,
        false => out::data(&results.to_string())?,
    }
    if let Some(directory) = &args.worst {
        write_worst(app, &results, directory)?;
    }
    Ok(Exit::Done)
}

fn write_worst(app: &App, results: &Results, directory: &Path) -> Result<()> {
    for (name, drawn) in results.worst_files() {
        let path = directory.join(name);
        if let Some(what) = app.protected.find(&path) {
            bail!("`{}` is {what}: name another directory", path.display());
        }
        let mut file = Replaced::new(&path)?;
        file.write(drawn.scenario.to_string().trim_end())?;
        file.finish()?;
    }
    app.say(&format!(
        "The worst services are in {}: `tidegate pace simulate FILE` runs one of them",
        directory.display()
    ));
    Ok(())
}
