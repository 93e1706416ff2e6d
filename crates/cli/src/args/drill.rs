//! `tidegate drill …`

use crate::units::{self, Span};
use clap::{Args as Flags, Subcommand};
use std::path::{Path, PathBuf};

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
    /// Run an HTTP service on this machine that throttles as you declare, and counts what it saw
    #[command(after_help = SERVICE_EXAMPLES)]
    Service(ServiceArgs),
}

impl DrillCommand {
    /// The files that it reads.
    pub fn inputs(&self) -> Vec<&Path> {
        match self {
            Self::Service(args) => args.spec.as_deref().into_iter().collect(),
        }
    }
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
