//! `tidegate load`

use crate::units::{self, Span};
use clap::Args as Flags;
use std::path::{Path, PathBuf};
use tidegate::{pacer::Policy, records::Format};

pub const EXAMPLES: &str = "\
Examples:
  tidegate load people.ndjson --to https://api.example.com/people --bearer-env TOKEN
  tidegate load people.csv.gz --to https://api.example.com/people/bulk --group 100 --errors bad.ndjson
  tidegate load orders.json --to https://api.example.com/orders/{number} --method PUT
  zcat huge.ndjson.gz | tidegate load - --to crm --operation upsert
  tidegate load bad.ndjson --to crm --dry-run
  tidegate load people.ndjson --to crm --give-up-after 30m

The same command again goes on where the last one was stopped or killed. Sinks with a name are kept in
tidegate.toml:
  [sinks.crm]
  kind = \"dataverse\"
  url = \"https://org.crm.dynamics.com\"
  table = \"accounts\"
  entity = \"account\"
  operation = \"create\"
  tenant = \"contoso.onmicrosoft.com\"
  users = [{ name = \"one\", client_id = \"…\", client_secret = { env = \"CRM_SECRET\" } }]
  [sinks.crm.pacer]
  max = 52";

/// `tidegate load`
#[derive(Debug, Flags)]
pub struct LoadArgs {
    /// NDJSON, a JSON array or CSV, also as .gz or .zst; `-` for stdin
    pub file: PathBuf,
    /// Where to: an address, or the name of a sink in tidegate.toml
    #[arg(long, value_name = "URL|NAME", value_parser = units::text)]
    pub to: String,
    #[command(flatten)]
    pub sink: SinkFlags,
    /// What the file is: ndjson, json or csv [default: by its name or content]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Write records that could not be loaded here, with line and reason; it can be loaded again
    #[arg(long, value_name = "FILE")]
    pub errors: Option<PathBuf>,
    /// Send nothing if any record is malformed [default: skip those, and say so]
    #[arg(long)]
    pub strict: bool,
    /// Check the file and the connection, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Load it again although that was done before
    #[arg(long)]
    pub again: bool,
    /// After so many failed attempts a record is dead [default: 5]
    #[arg(long, value_name = "N", env = "TIDEGATE_MAX_ATTEMPTS",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_attempts: Option<u32>,
    /// Say so when no record was taken for so long [default: 1h]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_STALLED_AFTER",
          value_parser = units::positive_span)]
    pub stalled_after: Option<Span>,
    /// End with exit code 3 when no record was taken for so long [default: go on]
    #[arg(long, value_name = "TIME", env = "TIDEGATE_GIVE_UP_AFTER",
          value_parser = units::positive_span)]
    pub give_up_after: Option<Span>,
    #[command(flatten)]
    pub pace: PaceFlags,
}

impl LoadArgs {
    /// The files that it reads.
    pub fn inputs(&self) -> Vec<&Path> {
        let more = [&self.sink.bearer_file, &self.sink.ca_file].into_iter().flatten();
        [&self.file].into_iter().chain(more).map(PathBuf::as_path).collect()
    }
}

/// What a sink should be. With a name, these go before what tidegate.toml says.
#[derive(Debug, Default, Flags)]
#[command(next_help_heading = "The sink")]
pub struct SinkFlags {
    /// Records per request [default: 1 for an address; what the sink allows for a name]
    #[arg(long, value_name = "N", value_parser = units::positive)]
    pub group: Option<u64>,
    /// One request per record (item), or groups as lines (ndjson) or as an array
    #[arg(long, value_name = "FORM", value_parser = ["item", "ndjson", "array"])]
    pub body: Option<String>,
    /// What is asked of the service: create, update, upsert, delete; for an address only a name
    #[arg(long, value_name = "OPERATION", value_parser = units::text)]
    pub operation: Option<String>,
    /// POST, PUT, PATCH or DELETE [default: POST]
    #[arg(long, value_name = "METHOD", value_parser = ["POST", "PUT", "PATCH", "DELETE"])]
    pub method: Option<String>,
    /// A header, as `Name: value`; may be repeated
    #[arg(long, value_name = "HEADER", value_parser = units::text)]
    pub header: Vec<String>,
    /// The variable that holds a bearer token
    #[arg(long, value_name = "VAR", conflicts_with_all = ["bearer_file", "user"],
          value_parser = units::text)]
    pub bearer_env: Option<String>,
    /// The file that holds a bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "user")]
    pub bearer_file: Option<PathBuf>,
    /// A user for basic authentication
    #[arg(long, value_name = "USER", requires = "password_env", value_parser = units::text)]
    pub user: Option<String>,
    /// The variable that holds the user's password
    #[arg(long, value_name = "VAR", requires = "user", value_parser = units::text)]
    pub password_env: Option<String>,
    /// Put each record's stable id into it under this name, unless it has it
    #[arg(long, value_name = "FIELD", value_parser = units::text)]
    pub id_field: Option<String>,
    /// How long a request may take [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = units::positive_span)]
    pub timeout: Option<Span>,
    /// Certificates to trust beside the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Connect to this private address, network or host all the same; may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = units::text)]
    pub allow: Vec<String>,
}

/// How to pace.
#[derive(Debug, Default, Flags)]
#[command(next_help_heading = "The pace")]
pub struct PaceFlags {
    /// Never more requests in flight than this, on one connection [default: 52]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max: Option<u32>,
    /// What decides: full, seed (plain AIMD) or fixed:N [default: full]
    #[arg(long)]
    pub policy: Option<Policy>,
    /// Requests per second that the service is known to allow, on one connection
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
}
