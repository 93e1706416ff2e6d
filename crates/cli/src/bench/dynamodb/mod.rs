//! The outbox on DynamoDB, measured in requests and capacity units, which do not depend on the machine, and under
//! faults that a proxy injects.

mod faults;
#[cfg(feature = "aws")]
mod fifo;
mod kills;
mod old;
mod requests;
mod sink;
mod tables;

use super::report::{Judge, Verdict, verdicts};
use crate::show::{number, table::table};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt;
use tables::Tables;
use tidegate_drill::dynamodb::Counters;

pub const EXAMPLES: &str = "\
Examples:
  tidegate bench dynamodb --store 'dynamodb://bench?region=eu-central-1&endpoint=http%3A%2F%2F127.0.0.1%3A8000'
  tidegate bench dynamodb --only requests,kills --json
  tidegate bench dynamodb --only fifo --sqs http://127.0.0.1:5000

It needs a server that speaks DynamoDB's language, such as an emulator: a proxy in front of it counts requests and
injects faults. It makes tables of its own there, and removes them.";

#[derive(Args, Debug)]
pub struct DynamoArgs {
    /// Messages of each measurement
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = super::at_least_one)]
    messages: usize,
    /// Measures only these
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// Where a server plays SQS, for `fifo`, such as http://127.0.0.1:5000; without it, `fifo` is left out
    #[cfg(feature = "aws")]
    #[arg(long, value_name = "ENDPOINT")]
    sqs: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// A look at five topics of twenty shards that finds nothing
    Empty,
    /// An idle relay for a minute, and a message after it
    Idle,
    /// Publishing, relaying and marking, beside the way of asking shard by shard
    Requests,
    /// Items that are left unprocessed
    Unprocessed,
    /// Marks that are throttled for a while
    Throttled,
    /// Two relays, one of them killed every two seconds
    Kills,
    /// The same into a FIFO queue of SQS
    #[cfg(feature = "aws")]
    Fifo,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    rows: Vec<Row>,
    verdicts: Vec<Verdict>,
}

/// What one step cost.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    name: String,
    messages: u64,
    requests: u64,
    read_units: f64,
    write_units: f64,
}

impl Row {
    fn new(name: &str, messages: usize, counters: &Counters) -> Self {
        let total = counters.total();
        Self {
            name: name.to_owned(),
            messages: messages as u64,
            requests: total.requests,
            read_units: total.read_units,
            write_units: total.write_units,
        }
    }

    fn per_message(&self) -> f64 {
        self.requests as f64 / self.messages.max(1) as f64
    }
}

/// Measures all that was asked for.
pub async fn measure(args: &DynamoArgs, url: &str) -> Result<Report> {
    if !tidegate::is_dynamodb(url) {
        bail!(
            "name a table with --store 'dynamodb://NAME?endpoint=…': see `tidegate bench dynamodb --help`"
        );
    }
    let wants = |one| args.only.is_empty() || args.only.contains(&one);
    let (mut rows, mut judge) = (Vec::new(), Judge::default());
    let tables = Tables::new(url)?;
    if wants(Measurement::Empty) {
        super::note("empty");
        requests::empty(&tables, &mut judge).await?;
    }
    if wants(Measurement::Idle) {
        super::note("idle");
        requests::idle(&tables, &mut judge).await?;
    }
    if wants(Measurement::Requests) {
        super::note("requests");
        requests::relay(&tables, args.messages, &mut rows, &mut judge).await?;
        old::measure(&tables, args.messages, &mut rows).await?;
    }
    if wants(Measurement::Unprocessed) {
        super::note("unprocessed");
        faults::unprocessed(&tables, args.messages, &mut judge).await?;
    }
    if wants(Measurement::Throttled) {
        super::note("throttled");
        faults::throttled(&tables, args.messages, &mut judge).await?;
    }
    if wants(Measurement::Kills) {
        super::note("kills");
        kills::measure(&tables, args.messages, &mut judge).await?;
    }
    #[cfg(feature = "aws")]
    if wants(Measurement::Fifo) {
        match &args.sqs {
            Some(endpoint) => {
                super::note("fifo");
                fifo::measure(&tables, endpoint, args.messages, &mut judge).await?;
            }
            None if args.only.is_empty() => eprintln!("not measured: fifo, which needs --sqs"),
            None => {
                bail!("`--only fifo` needs a server that plays SQS: name it with --sqs ENDPOINT")
            }
        }
    }
    Ok(Report { rows, verdicts: judge.verdicts })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.iter().map(|row| {
            let per_thousand =
                |units: f64| number::figure(units * 1e3 / row.messages.max(1) as f64);
            [
                row.name.clone(),
                number::count(row.messages),
                number::count(row.requests),
                number::figure(row.per_message()),
                per_thousand(row.read_units),
                per_thousand(row.write_units),
            ]
        });
        let headings =
            ["", "messages", "requests", "per message", "read units/1,000", "write units/1,000"];
        f.write_str(&table(headings, 1, rows.collect()))?;
        writeln!(f)?;
        f.write_str(&verdicts(&self.verdicts))
    }
}
