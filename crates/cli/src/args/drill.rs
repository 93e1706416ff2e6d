//! `tidegate drill …`

use crate::units::{self, LeaseTime, Span, Timeout};
use clap::{Args as Flags, Subcommand};
use std::path::{Path, PathBuf};

const RELAY_EXAMPLES: &str = "\
Examples:
  tidegate drill relay --seconds 30
  tidegate drill relay --postgres --seconds 60 --crash-every 15s --failovers 1 --seed 7
  tidegate drill relay --postgres --seconds 600 --relays 4 --kill-every 2s --crash-every 20s --failovers 2
  tidegate drill relay --store postgres://tide@db/tide --json

Exit code 0: all laws hold; 1: a law is broken, or the drill could not be carried out.";

const BATCH_EXAMPLES: &str = "\
Examples:
  tidegate drill batch --seconds 30
  tidegate drill batch --postgres --seconds 60 --crash-every 15s --failovers 1 --seed 7
  tidegate drill batch --postgres --seconds 600 --workers 4 --kill-every 2s --crash-every 20s --failovers 2
  tidegate drill batch --store postgres://tide@db/tide --json

Exit code 0: all laws hold; 1: a law is broken, or the drill could not be carried out.";

const SERVICE_EXAMPLES: &str = "\
Examples:
  tidegate drill service --concurrency 20 --delay 100ms --retry-after 2s
  tidegate drill service --rate 100 --hint 8 --port 8080
  tidegate drill service --spec limits.toml --json

In another terminal:
  tidegate load people.ndjson --to http://127.0.0.1:8080/records --allow 127.0.0.1
  curl http://127.0.0.1:8080/counters

Its address is printed first, its counters when it is stopped. In a file of --spec, durations are
numbers of seconds:
  delay = 0.1
  retry_after = 2
  concurrency = { limit = 20 }
  budgets = [{ kind = \"requests\", limit = 6000, window = 300 }]";

/// `tidegate drill …`
#[derive(Debug, Subcommand)]
pub enum DrillCommand {
    /// Kill, stop and restart relays, crash the server and fail over, and judge what was delivered
    #[command(after_help = RELAY_EXAMPLES)]
    Relay(RelayDrillArgs),
    /// Kill, stop and restart workers, crash the server and fail over, and judge the results
    #[command(after_help = BATCH_EXAMPLES)]
    Batch(BatchDrillArgs),
    /// Run an HTTP service on this machine that throttles as you declare, and counts what it saw
    #[command(after_help = SERVICE_EXAMPLES)]
    Service(ServiceArgs),
}

impl DrillCommand {
    /// The files that it reads.
    pub fn inputs(&self) -> Vec<&Path> {
        match self {
            Self::Service(args) => args.spec.as_deref().into_iter().collect(),
            Self::Relay(_) | Self::Batch(_) => Vec::new(),
        }
    }
}

/// `tidegate drill relay`
#[derive(Debug, Flags)]
pub struct RelayDrillArgs {
    /// Relay processes at a time
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub relays: u8,
    #[command(flatten)]
    pub faults: FaultFlags,
}

/// `tidegate drill batch`
#[derive(Debug, Flags)]
pub struct BatchDrillArgs {
    /// Worker processes at a time
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub workers: u8,
    #[command(flatten)]
    pub faults: FaultFlags,
}

/// Which faults are made, and where.
#[derive(Debug, Flags)]
pub struct FaultFlags {
    /// How long faults are made
    #[arg(long, value_name = "N", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Decides which faults are made when
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Start a private PostgreSQL server with synchronous_commit = off [default: a SQLite file, or --store]
    #[arg(long)]
    pub postgres: bool,
    /// The directory with PostgreSQL's programs [default: the newest in /usr/lib/postgresql]
    #[arg(long, value_name = "DIR", env = "TIDEGATE_TEST_POSTGRES_BIN", requires = "postgres")]
    pub postgres_bin: Option<PathBuf>,
    /// How often a process is killed, stopped for longer than its lease, or restarted; or none
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub kill_every: Timeout,
    /// How often the private server crashes; or none [default: 20s with --postgres]
    #[arg(long, value_name = "TIME", requires = "postgres")]
    pub crash_every: Option<Timeout>,
    /// How often a standby that lags replaces the private server, in all
    #[arg(long, value_name = "N", default_value_t = 0, requires = "postgres")]
    pub failovers: u32,
    /// The share of deliveries or runs that fail, 0 to 0.5
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = share)]
    pub fail_share: f64,
    /// How long until another process takes over the work of one that is gone, 1s to 1d
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub lease: LeaseTime,
    /// Keep the data and the logs here [default: removed]
    #[arg(long, value_name = "DIR")]
    pub keep_data: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=0.5).contains(share));
    share.ok_or_else(|| format!("`{text}` is not a share from 0 to 0.5"))
}

/// `tidegate drill service`
#[derive(Debug, Flags)]
pub struct ServiceArgs {
    /// Where it listens, on 127.0.0.1 [default: any free port]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// All that it does, as a file; flags go before it
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// How long a request takes [default: no time]
    #[arg(long, value_name = "TIME")]
    pub delay: Option<Span>,
    /// Reject with 429 when more than so many are in flight
    #[arg(long, value_name = "N", value_parser = units::positive)]
    pub concurrency: Option<u64>,
    /// Reject with 429 when more than so many came within the last second
    #[arg(long, value_name = "N", value_parser = units::positive)]
    pub rate: Option<u64>,
    /// Sent with each rejection
    #[arg(long, value_name = "TIME", value_parser = units::positive_span)]
    pub retry_after: Option<Span>,
    /// Sent with each answer: so much in flight would be right (x-ms-dop-hint)
    #[arg(long, value_name = "N")]
    pub hint: Option<u32>,
    /// Refuse more than so many records in one request (413)
    #[arg(long, value_name = "N")]
    pub max_group: Option<usize>,
    /// Answer for each record by itself (207) instead of refusing a whole request
    #[arg(long)]
    pub per_record_answers: bool,
    /// Fail so large a share of the requests (500)
    #[arg(long, value_name = "SHARE")]
    pub fail_share: Option<f64>,
}
