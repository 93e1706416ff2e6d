//! `tidegate completions`: for shells.

use crate::{args::Args, exit::Exit, out};
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the completions for a shell.
pub fn run(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "tidegate", &mut script);
    out::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
