//! `tidegate pace …`

use clap::{Args as Flags, Subcommand};
use std::path::{Path, PathBuf};
use tidegate::{
    BatchId,
    pacer::scenario::{AnyPolicy, tournament::Family},
};

pub const EXAMPLES: &str = "\
Examples:
  tidegate pace
  tidegate pace 3 --json
  tidegate pace simulate limits.toml --policy seed
  tidegate pace tournament --services 300";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  tidegate pace simulate limits.toml
  tidegate pace simulate limits.toml --policy fixed:52 --json
  tidegate pace simulate limits.toml --pacers 5 --log
  tidegate pace simulate limits.toml --plot limits.svg

A scenario, with times in seconds:
  name = \"defers above five in flight\"
  requests = 500
  [service]
  delay = 0.1
  latency = 0.01
  [service.concurrency]
  limit = 5
  [[change]]
  at = 4.0
  concurrency = { limit = 0, action = \"drop\" }
  [[change]]
  at = 6.0
  concurrency = { limit = 5 }
  [pacer]
  max = 200
  [expect]
  makespan = [12.0, 16.0]

All keys: docs/pacing.md. Exit code 1: something that the file expects does not hold.";

const TOURNAMENT_EXAMPLES: &str = "\
Examples:
  tidegate pace tournament
  tidegate pace tournament --services 1000 --seed 7 --family six
  tidegate pace tournament --policy full --policy vector --json
  tidegate pace tournament --policy full --worst worst

How the services are drawn, and how to read the table: docs/pacing.md.";

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
            Some(PaceCommand::Tournament(_)) | None => Vec::new(),
        }
    }
}

/// `tidegate pace …`
#[derive(Debug, Subcommand)]
pub enum PaceCommand {
    /// Try the pacer on a simulated service
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateArgs),
    /// Compare policies on simulated services that are drawn at random
    #[command(after_help = TOURNAMENT_EXAMPLES)]
    Tournament(TournamentArgs),
}

/// `tidegate pace simulate`
#[derive(Debug, Flags)]
pub struct SimulateArgs {
    /// The scenario
    pub file: PathBuf,
    /// What decides instead: full, seed, fixed:N, vector, gradient2, vegas, bound:a or bound:b
    #[arg(long)]
    pub policy: Option<AnyPolicy>,
    /// So many independent pacers share the service
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub pacers: Option<u32>,
    /// Also show each decision with its reason
    #[arg(long)]
    pub log: bool,
    /// Draw the level and the requests in flight over time into this SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// `tidegate pace tournament`
#[derive(Debug, Flags)]
pub struct TournamentArgs {
    /// So many services are drawn
    #[arg(long, value_name = "N", default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub services: u64,
    /// Decides which services are drawn
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Where they are drawn from: six (the classic kinds) or wide (all kinds, with latency, slow arrivals and several connections)
    #[arg(long, default_value_t = Family::Wide)]
    pub family: Family,
    /// A policy; the first counts, the others are compared with it [default: full, seed, vector, gradient2, vegas, fixed:20]
    #[arg(long = "policy", value_name = "POLICY", value_delimiter = ',')]
    pub policies: Vec<AnyPolicy>,
    /// Write the ten services on which the first policy did worst into this directory
    #[arg(long, value_name = "DIR")]
    pub worst: Option<PathBuf>,
    /// So many services are simulated at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub threads: Option<u32>,
}
