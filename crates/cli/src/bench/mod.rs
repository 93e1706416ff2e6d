//! How fast Tidegate is, beside what it replaces: `tidegate bench batch`, `load` and
//! `relay`.
//!
//! Everything is measured in one process start and on one store: the same runs in three modes, and
//! the figures that the project promises. Tables of the bench's own are dropped; the batches stay in
//! the store, completed or cancelled.

mod baseline;
mod bits;
mod bulk;
mod copy;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod load;
mod meter;
mod ranges;
mod relay;
mod report;
mod scaling;

use crate::units;
use anyhow::{Context, bail};
use baseline::Compute;
use clap::{Args, Subcommand, ValueEnum};
use meter::Meter;
pub use meter::connect;
pub use relay::Database;
use report::{Copied, Mode, Report};
use serde::Serialize;
use std::{fmt::Display, path::Path};
use tidegate::{Access, Batch, OpenStore, Workloads};

/// What `tidegate bench` is told.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  tidegate bench batch --store postgres://tide@db/tide
  tidegate bench batch --only ranges,copy --runs 1M --json

Its batches stay in the store, completed or cancelled.";

#[derive(Debug, Subcommand)]
enum What {
    /// Measures batches: run by run, row by row, and by ranges
    #[command(after_help = EXAMPLES)]
    Batch(BatchArgs),
    /// Measures loads into a service that throttles: by the pacer, plain AIMD, and fixed parallelism
    #[command(after_help = load::EXAMPLES)]
    Load(load::LoadArgs),
    /// Measures the outbox: publishing, and delivering beside a two-query design
    #[command(after_help = relay::EXAMPLES)]
    Relay(relay::RelayArgs),
    /// Measures the outbox on DynamoDB: requests, capacity units, and what faults do
    #[cfg(feature = "dynamodb")]
    #[command(name = "dynamodb", after_help = dynamodb::EXAMPLES)]
    DynamoDb(dynamodb::DynamoArgs),
}

#[derive(Args, Debug)]
struct BatchArgs {
    /// Runs of the mode `ranges`; the slow modes take fewer
    #[arg(long, default_value = "100k", value_parser = units::positive)]
    runs: u64,
    /// Threads, or concurrent connections, of each mode
    #[arg(long, default_value_t = 2, value_parser = at_least_one)]
    threads: usize,
    /// What the runs compute
    #[arg(long, default_value = "noop")]
    workload: String,
    /// How often `ranges` and `copy` are measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    repeat: usize,
    /// Measures only these
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "must be 1 or more".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// Load, claim, delete, insert and update for each run
    PerRun,
    /// Row claims of 20, flushes of 100
    Rows,
    /// Tidegate
    Ranges,
    /// Submitting ten million runs
    Submit,
    /// COPY of the same pages, on PostgreSQL
    Copy,
    /// A million runs in a new SQLite file
    Embedded,
    /// One worker process beside several, on PostgreSQL
    Scaling,
    /// The same digest whoever carries a batch out
    Bits,
}

/// Measures and prints.
pub async fn run(args: BenchArgs, store_url: &str, json: bool) -> anyhow::Result<()> {
    match args.what {
        What::Batch(args) => print(&batch(args, store_url).await?, json),
        What::Load(args) => print(&load::measure(&args).await?, json),
        What::Relay(args) => print(&relay::measure(&args, store_url).await?, json),
        #[cfg(feature = "dynamodb")]
        What::DynamoDb(args) => print(&dynamodb::measure(&args, store_url).await?, json),
    }
}

fn print(report: &(impl Serialize + Display), json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
    } else {
        println!("{report}");
    }
    Ok(())
}

async fn batch(args: BatchArgs, store_url: &str) -> anyhow::Result<Report> {
    if store_url.starts_with("memory:") {
        bail!("a bench needs a durable store: use sqlite:FILE or postgres://USER@HOST/DATABASE");
    }
    let server_only = [Measurement::Copy, Measurement::Scaling];
    if store_url.starts_with("sqlite:") && args.only.iter().any(|only| server_only.contains(only)) {
        bail!("copy and scaling are measured on PostgreSQL: name a server with --store");
    }
    Bench::open(args, store_url).await?.measure().await
}

/// Runs with small results to compare with COPY: enough that the first short ranges do not count.
const SMALL_RUNS: u64 = 3_000_000;

struct Bench<'a> {
    args: BatchArgs,
    url: &'a str,
    store: OpenStore,
    workloads: Workloads,
    meter: Meter,
    report: Report,
}

impl<'a> Bench<'a> {
    async fn open(args: BatchArgs, url: &'a str) -> anyhow::Result<Self> {
        let store = tidegate::open(url, Access::Existing).await?;
        let meter = Meter::open(url).await?;
        let report = Report::new(store.capabilities().name, args.threads, meter.server().cloned());
        let workloads = tidegate::workloads::builtin().with(bulk::Bulk);
        Ok(Self { args, url, store, workloads, meter, report })
    }

    fn wants(&self, measurement: Measurement) -> bool {
        self.args.only.is_empty() || self.args.only.contains(&measurement)
    }

    async fn measure(mut self) -> anyhow::Result<Report> {
        self.measure_baselines().await?;
        if self.wants(Measurement::Ranges) {
            note("ranges");
            let (mode, _) = self.ranges(&self.args.workload, self.args.runs).await?;
            self.report.modes.push(mode);
        }
        if self.wants(Measurement::Copy) && self.meter.server().is_some() {
            self.measure_copies().await?;
        }
        if self.wants(Measurement::Submit) {
            note("submit");
            self.report.submit_ms = Some(ranges::submit(&self.store, &self.workloads).await?);
        }
        if self.wants(Measurement::Embedded) {
            note("embedded");
            let mode = ranges::embedded(&self.workloads, self.args.threads).await?;
            self.report.embedded = Some(mode);
        }
        if self.wants(Measurement::Scaling) && self.meter.server().is_some() {
            self.report.scaling = scaling::measure(self.url, &self.store, &self.meter).await?;
        }
        if self.wants(Measurement::Bits) {
            self.report.bits = bits::measure(self.url, &self.store, &self.workloads).await?;
        }
        self.report.judge();
        Ok(self.report)
    }

    async fn measure_baselines(&mut self) -> anyhow::Result<()> {
        let compute = Compute::new(&self.workloads, &self.args.workload)?;
        let threads = self.args.threads;
        let mut modes: Vec<Mode> = Vec::new();
        for (measurement, kind) in [
            (Measurement::PerRun, baseline::Kind::PerRun),
            (Measurement::Rows, baseline::Kind::Rows),
        ] {
            if self.wants(measurement) {
                note(kind.name());
                modes.push(baseline::measure(kind, &self.meter, &compute, threads).await?);
            }
        }
        self.report.modes.extend(modes);
        Ok(())
    }

    /// The same pages by COPY, right after they were written by ranges: with small results, and with
    /// large ones.
    async fn measure_copies(&mut self) -> anyhow::Result<()> {
        note("copy");
        let small = self.args.runs.max(SMALL_RUNS);
        for (workload, runs) in [(self.args.workload.as_str(), small), (bulk::NAME, bulk::RUNS)] {
            let job = self.job(workload, runs);
            let mut copies = Vec::new();
            for _ in 0..self.args.repeat {
                let (mode, batch) = job.measure(&self.meter).await?;
                copies.push(copy::measure(&self.store, &self.meter, &mode, &batch).await?);
            }
            let median =
                report::median_by(copies, Copied::ratio).context("nothing was measured")?;
            self.report.copies.push(median);
        }
        Ok(())
    }

    fn job<'b>(&'b self, workload: &'b str, runs: u64) -> ranges::Job<'b> {
        let (store, workloads) = (&self.store, &self.workloads);
        ranges::Job { store, workloads, workload, runs, threads: self.args.threads }
    }

    async fn ranges(&self, workload: &str, runs: u64) -> anyhow::Result<(Mode, Batch)> {
        let job = self.job(workload, runs);
        let mut measured = Vec::new();
        for _ in 0..self.args.repeat {
            measured.push(job.measure(&self.meter).await?);
        }
        report::median_by(measured, |(mode, _)| mode.seconds).context("nothing was measured")
    }
}

/// Says on stderr what is being measured: some of it takes a while.
fn note(what: &str) {
    eprintln!("measuring {what} …");
}

/// A directory for files of the bench, on the file system that the user works on: the one for
/// temporary files is often kept in memory, where a commit costs nothing.
fn scratch() -> anyhow::Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix(".tidegate-bench-")
        .tempdir_in(Path::new("."))
        .context("cannot make a directory here for the files of the bench; run it elsewhere")
}
