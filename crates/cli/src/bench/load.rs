//! Loading into a service that throttles, over real sockets: by the pacer, by plain AIMD, and with a
//! fixed number of requests in flight, side by side.

use crate::{
    show::{number, table::table},
    units::{self, Span},
};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::{fmt, fs, net::Ipv4Addr, path::Path, sync::Arc, time::Instant};
use tidegate::{
    Access, OpenStore, Stop, WorkerOptions,
    load::{Load, LoadSpec},
    pacer::{self, Policy},
    records::{Input, Options, Records},
    sinks::http,
    worker_id,
};
use tidegate_drill::{Concurrency, Counters, Service, Spec};

pub const EXAMPLES: &str = "\
Examples:
  tidegate bench load
  tidegate bench load --records 100k --limit 50 --retry-after 5s --json";

#[derive(Args, Debug)]
pub struct LoadArgs {
    /// Records of each load
    #[arg(long, value_name = "N", default_value = "20k", value_parser = units::positive)]
    records: u64,
    /// Records per request
    #[arg(long, value_name = "N", default_value = "10", value_parser = units::positive)]
    group: u64,
    /// Requests that the service allows in flight
    #[arg(long, value_name = "N", default_value = "20", value_parser = units::positive)]
    limit: u64,
    /// How long it takes for one
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = units::positive_span)]
    delay: Span,
    /// Sent with each rejection
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::positive_span)]
    retry_after: Span,
}

/// What was measured, row by row.
#[derive(Debug, Serialize)]
pub struct Report {
    records: u64,
    /// Records per second that the service allows.
    allowed: f64,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    seconds: f64,
    records_per_second: f64,
    /// Of what the service allows.
    share: f64,
    requests: u64,
    throttled: u64,
    throttled_share: f64,
    inside_retry_after: u64,
    max_in_flight: u64,
    stored: u64,
    duplicates: u64,
}

/// Measures all ways, one after the other, each with a service of its own.
pub async fn measure(args: &LoadArgs) -> Result<Report> {
    let directory = super::scratch()?;
    let fresh = directory.path().join("fresh.db");
    let per_second = args.limit as f64 * args.group as f64 / args.delay.0.as_secs_f64();
    let mut report = Report { records: args.records, allowed: per_second, rows: Vec::new() };
    let ways = [
        ("pacer", Policy::Full, &fresh),
        ("pacer, second load", Policy::Full, &fresh),
        ("plain AIMD", Policy::Seed, &directory.path().join("seed.db")),
        ("fixed at 52", Policy::Fixed(52), &directory.path().join("fixed.db")),
    ];
    for (at, (name, policy, store)) in ways.into_iter().enumerate() {
        super::note(name);
        let file = directory.path().join(format!("{at}.ndjson"));
        write_records(&file, args.records, at)?;
        let store = open(store).await?;
        report.rows.push(args.load(name, policy, &file, &store, per_second).await?);
    }
    Ok(report)
}

async fn open(path: &Path) -> Result<OpenStore> {
    Ok(tidegate::open(&format!("sqlite:{}", path.display()), Access::Create).await?)
}

/// Each file is another one, so that each load is.
fn write_records(path: &Path, records: u64, file: usize) -> Result<()> {
    let line = |id| format!("{{\"id\":\"{file}-{id}\",\"name\":\"somebody\",\"balance\":{id}}}\n");
    Ok(fs::write(path, (0..records).map(line).collect::<String>())?)
}

impl LoadArgs {
    fn service(&self) -> Result<Service> {
        let spec = Spec {
            delay: self.delay.0,
            concurrency: Some(Concurrency { limit: self.limit as usize }),
            retry_after: Some(self.retry_after.0),
            ..Spec::default()
        };
        Ok(Service::start(spec, (Ipv4Addr::LOCALHOST, 0).into())?)
    }

    async fn load(
        &self,
        name: &'static str,
        policy: Policy,
        file: &Path,
        store: &OpenStore,
        allowed: f64,
    ) -> Result<Row> {
        let service = self.service()?;
        let config: http::Config = serde_json::from_value(serde_json::json!({
            "url": format!("{}/records", service.url()),
            "body": "ndjson",
            "max_group": self.group,
            "allow": ["127.0.0.1"],
        }))?;
        let sink = Arc::new(http::Http::new(&config, &|_| None)?);
        let input = Input::Path(file.to_owned());
        let records = Records::open(input, &Options::default(), &mut |_| ())?;
        let spec = LoadSpec {
            to: "bench".to_owned(),
            place: "bench".to_owned(),
            group: self.group as usize,
            pacer: pacer::Options { policy, ..pacer::Options::default() },
            max_attempts: 5,
        };
        let load = Load::new(records, sink, spec)?;
        let batch = store.submit(load.batch()).await?.id;
        let start = Instant::now();
        load.run(store, batch, WorkerOptions::new(worker_id()), Stop::new()).await?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(row(name, self.records, seconds, allowed, &service.counters()))
    }
}

fn row(name: &'static str, records: u64, seconds: f64, allowed: f64, counters: &Counters) -> Row {
    let per_second = records as f64 / seconds;
    Row {
        name,
        seconds,
        records_per_second: per_second,
        share: per_second / allowed,
        requests: counters.requests,
        throttled: counters.throttled.total,
        throttled_share: counters.throttled.total as f64 / counters.requests.max(1) as f64,
        inside_retry_after: counters.inside_retry_after,
        max_in_flight: counters.max_in_flight,
        stored: counters.records,
        duplicates: counters.duplicates,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headings = [
            "",
            "seconds",
            "records/s",
            "of allowed",
            "requests",
            "throttled",
            "share",
            "in Retry-After",
            "most in flight",
            "stored",
            "twice",
        ];
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let rows = self.rows.iter().map(|row| {
            [
                row.name.to_owned(),
                format!("{:.2}", row.seconds),
                number::count(row.records_per_second.round() as u64),
                percent(row.share),
                number::count(row.requests),
                number::count(row.throttled),
                percent(row.throttled_share),
                number::count(row.inside_retry_after),
                number::count(row.max_in_flight),
                number::count(row.stored),
                number::count(row.duplicates),
            ]
        });
        writeln!(
            f,
            "{} records; the service allows {} records/s",
            number::count(self.records),
            number::count(self.allowed.round() as u64)
        )?;
        f.write_str(table(headings, 1, rows.collect()).trim_end())
    }
}
