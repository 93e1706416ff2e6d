//! How many requests per second the service can take: the test must not measure the tester.
//!
//! `cargo run --release -p tidegate-drill --example throughput -- [CLIENTS] [SECONDS] [RECORDS]`
//!
//! Client and service share the machine, so that the service alone can take more.

use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use std::{
    error::Error,
    time::{Duration, Instant},
};
use tidegate_drill::{Service, Spec};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let clients = arguments.next().transpose()?.unwrap_or(32);
    let seconds = arguments.next().transpose()?.unwrap_or(3);
    let records = arguments.next().transpose()?.unwrap_or(1);
    let service = Service::start(Spec::default(), ([127, 0, 0, 1], 0).into())?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let tasks: Vec<_> = (0..clients)
        .map(|client| tokio::spawn(send_until(end, service.url(), client, records)))
        .collect();
    for task in tasks {
        task.await??;
    }
    let seen = service.counters();
    let per_second = |count: u64| count as f64 / seen.elapsed_seconds;
    println!(
        "{:.0} requests/s, {:.0} records/s with {clients} clients",
        per_second(seen.accepted),
        per_second(seen.records)
    );
    Ok(())
}

async fn send_until(end: Instant, url: String, client: u64, records: u64) -> Result<(), Failure> {
    let http = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let mut sent = 0;
    while Instant::now() < end {
        let body: String = (0..records)
            .map(|i| format!("{{\"id\":\"{client}-{}\",\"name\":\"some text\"}}\n", sent + i))
            .collect();
        sent += records;
        let request = Request::post(format!("{url}/records"))
            .header("content-type", "application/x-ndjson")
            .body(Full::from(body))?;
        http.request(request).await?.into_body().collect().await?;
    }
    Ok(())
}
