//! The worker processes: `tidegate worker`.

use crate::{
    args::drill::BatchDrillArgs,
    drill::stage::{Stage, log},
};
use anyhow::{Context, Result};
use std::{fs::File, process::Command};
use tidegate_drill::Crew;

/// Threads of a worker, whatever the machine has: runs sleep.
const THREADS: &str = "4";

pub fn start(stage: &Stage, args: &BatchDrillArgs) -> Result<Crew> {
    let program = std::env::current_exe().context("cannot find this program to start workers")?;
    let (url, directory) = (stage.url.clone(), stage.directory.clone());
    let lease = format!("{}ms", args.faults.lease.0.as_millis());
    let make = move |number| {
        let mut command = Command::new(&program);
        command.args(["worker", "--threads", THREADS, "--flush-after", "50ms", "--lease", &lease]);
        // Not as an argument, where every user of the machine sees a password.
        command.env("TIDEGATE_STORE", &url).current_dir(&directory);
        for name in
            ["TIDEGATE_CONFIG", "TIDEGATE_RANGE_LENGTH", "TIDEGATE_FLUSH_RUNS", "TIDEGATE_GRACE"]
        {
            command.env_remove(name);
        }
        command.stderr(File::create(log(&directory, number))?);
        Ok(command)
    };
    Crew::start(args.workers.into(), stage.group, make)
        .context("cannot start the workers of the drill")
}
