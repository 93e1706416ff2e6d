//! The outbox, measured in a database of the bench's own: what publishing costs an application, how fast
//! messages reach a sink, and how that compares with asking collection by collection.

mod beside;
mod database;
mod publish;
mod retention;
mod seed;
mod sink;
mod snapshot;
mod throughput;

use super::{
    meter::Server,
    report::{Judge, Verdict, verdicts},
};
use crate::{
    show::{number, table::table},
    units,
};
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
pub use database::Database;
use serde::Serialize;
use std::fmt;

pub const EXAMPLES: &str = "\
Examples:
  tidegate bench relay --store postgres://tide@db/tide
  tidegate bench relay --only publish,throughput --json

It makes a database of its own on the server, and drops it. `tidegate drill relay` kills relays at work.";

#[derive(Args, Debug)]
pub struct RelayArgs {
    /// Messages that wait in the large case
    #[arg(long, value_name = "N", default_value = "200k", value_parser = units::positive)]
    messages: u64,
    /// How often each is measured; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = super::at_least_one)]
    repeat: usize,
    /// Measures only these
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// 10,000 messages over 1, 10 and 100 collections, beside the two-query design
    Collections,
    /// 1 KB payloads to a sink that counts
    Throughput,
    /// The same while a snapshot is open for long
    Snapshot,
    /// 16 writers, beside a plain insert
    Publish,
    /// A sink beside one that never answers
    Beside,
    /// Removing delivered messages beside claims, and ten times as many
    Retention,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    server: Server,
    rows: Vec<Row>,
    verdicts: Vec<Verdict>,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: String,
    messages: u64,
    seconds: f64,
    per_second: f64,
    /// Beside what it is compared with.
    ratio: Option<f64>,
    statements_per_message: Option<f64>,
}

impl Row {
    fn new(name: impl Into<String>, messages: u64, seconds: f64) -> Self {
        let per_second = messages as f64 / seconds;
        Self {
            name: name.into(),
            messages,
            seconds,
            per_second,
            ratio: None,
            statements_per_message: None,
        }
    }
}

/// Measures all that was asked for.
pub async fn measure(args: &RelayArgs, url: &str) -> Result<Report> {
    if !tidegate::is_postgres(url) {
        bail!("the outbox is measured on PostgreSQL: name a server with --store postgres://…");
    }
    let wants = |one| args.only.is_empty() || args.only.contains(&one);
    let database = Database::create(url, "tidegate_bench").await?;
    let mut rows = Vec::new();
    let mut judge = Judge { void: !database.server.durable(), ..Judge::default() };
    if wants(Measurement::Publish) {
        super::note("publish");
        publish::measure(&database, args.repeat, &mut rows, &mut judge).await?;
    }
    if wants(Measurement::Throughput) {
        super::note("throughput");
        throughput::measure(&database, args, &mut rows, &mut judge).await?;
    }
    if wants(Measurement::Snapshot) {
        super::note("snapshot");
        snapshot::measure(&database, args, &mut rows, &mut judge).await?;
    }
    if wants(Measurement::Collections) {
        super::note("collections");
        seed::measure(&database, args.repeat, &mut rows, &mut judge).await?;
    }
    if wants(Measurement::Beside) {
        super::note("beside");
        beside::measure(&database, args.repeat, &mut rows, &mut judge).await?;
    }
    if wants(Measurement::Retention) {
        super::note("retention");
        retention::measure(&database, args, &mut rows, &mut judge).await?;
    }
    let server = database.server.clone();
    database.drop().await?;
    Ok(Report { server, rows, verdicts: judge.verdicts })
}

/// The one in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.server;
        writeln!(
            f,
            "PostgreSQL {}, fsync {}, synchronous_commit {}\n",
            server.version, server.fsync, server.synchronous_commit
        )?;
        let rows = self.rows.iter().map(|row| {
            [
                row.name.clone(),
                number::count(row.messages),
                format!("{:.2}", row.seconds),
                number::count(row.per_second.round() as u64),
                row.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
                row.statements_per_message.map(|it| format!("{it:.5}")).unwrap_or_default(),
            ]
        });
        let headings = ["", "messages", "seconds", "per second", "ratio", "statements/message"];
        f.write_str(&table(headings, 1, rows.collect()))?;
        writeln!(f)?;
        f.write_str(&verdicts(&self.verdicts))
    }
}
