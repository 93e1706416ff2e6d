//! `tidegate pace …`

use clap::{Args as Flags, Subcommand};
use std::path::{Path, PathBuf};
use tidegate::{BatchId, pacer::Policy};

pub const EXAMPLES: &str = "\
Examples:
  tidegate pace
  tidegate pace 3 --json
  tidegate pace simulate limits.toml --policy seed";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  tidegate pace simulate limits.toml
  tidegate pace simulate limits.toml --policy fixed:52 --json
  tidegate pace simulate limits.toml --pacers 5 --log

A scenario, with times in seconds:
  name = \"defers above five in flight\"
  requests = 500
  [service]
  delay = 0.1
  [service.concurrency]
  limit = 5
  [pacer]
  max = 200
  [expect]
  makespan = [10.0, 13.0]

Exit code 1: something that the file expects does not hold.";

/// `tidegate pace`
#[derive(Debug, Flags)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PaceArgs {
    /// Only the load that is this batch
    pub batch: Option<BatchId>,
    #[command(subcommand)]
    pub command: Option<PaceCommand>,
}

impl PaceArgs {
    /// The files that it reads.
    pub fn inputs(&self) -> Vec<&Path> {
        match &self.command {
            Some(PaceCommand::Simulate(args)) => vec![&args.file],
            None => Vec::new(),
        }
    }
}

/// `tidegate pace …`
#[derive(Debug, Subcommand)]
pub enum PaceCommand {
    /// Try the pacer on a simulated service
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateArgs),
}

/// `tidegate pace simulate`
#[derive(Debug, Flags)]
pub struct SimulateArgs {
    /// The scenario
    pub file: PathBuf,
    /// What decides instead: full, seed or fixed:N
    #[arg(long)]
    pub policy: Option<Policy>,
    /// So many independent pacers share the service
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub pacers: Option<u32>,
    /// Also show each decision with its reason
    #[arg(long)]
    pub log: bool,
}
