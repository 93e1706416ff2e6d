//! The relay processes: `tidegate relay` with settings of its own each, so that the sink knows who delivers.

use super::sink::HEALTHY;
use crate::{
    args::drill::RelayDrillArgs,
    drill::stage::{Stage, log},
};
use anyhow::{Context, Result};
use std::{fs, io, path::PathBuf, process::Command, time::Duration};
use tidegate_drill::{Crew, recorder::RELAY};

pub fn start(stage: &Stage, args: &RelayDrillArgs, sink: &str) -> Result<Crew> {
    let program = std::env::current_exe().context("cannot find this program to start relays")?;
    let (url, directory, sink) = (stage.url.clone(), stage.directory.clone(), sink.to_owned());
    let lease = args.faults.lease.0;
    let make = move |number| command(&program, &url, &directory, &sink, number, lease);
    Crew::start(args.relays.into(), stage.group, make)
        .context("cannot start the relays of the drill")
}

fn command(
    program: &PathBuf,
    url: &str,
    directory: &PathBuf,
    sink: &str,
    number: u32,
    lease: Duration,
) -> io::Result<Command> {
    let config = directory.join(format!("relay-{number}.toml"));
    fs::write(&config, settings(sink, number))?;
    let mut command = Command::new(program);
    command.arg("relay").arg("--config").arg(config);
    command.args(["--lease", &format!("{}ms", lease.as_millis())]);
    // Not as an argument, where every user of the machine sees a password.
    command.env("TIDEGATE_STORE", url).env_remove("TIDEGATE_LEASE").env_remove("TIDEGATE_GRACE");
    command.current_dir(directory).stderr(fs::File::create(log(directory, number))?);
    Ok(command)
}

/// The healthy topic has a sink of its own, so that nothing that fails has a part in it. Messages that fail are tried
/// again soon, and for ever.
fn settings(sink: &str, number: u32) -> String {
    let declared = |name: &str| {
        format!(
            "[sinks.{name}]\nkind = \"http\"\nurl = \"{sink}/{{topic}}\"\nbody = \"message\"\n\
             allow = [\"127.0.0.1\"]\nheaders = {{ {RELAY} = \"{number}\" }}\n"
        )
    };
    format!(
        "{}{}[[routes]]\ntopic = \"{HEALTHY}\"\nsink = \"well\"\n[[routes]]\ntopic = \"*\"\nsink = \
         \"flaky\"\n[[topics]]\ntopic = \"*\"\nmax_attempts = 1000000\nbackoff = \"100ms\"\nmax_backoff = \
         \"1s\"\n",
        declared("well"),
        declared("flaky")
    )
}
