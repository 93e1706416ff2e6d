//! What the tests of all brokers need: where they are, items, and the stories that are the same for
//! each.

use crate::{gate::Gate, support::env};
use std::{
    net::SocketAddr,
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};
use tidegate_core::sink::{Delivery, Item, Outcome, Sink, Verdict};
use url::Url;

/// A server that refuses comes back, and what is sent then arrives, within this.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the server is that the environment names under `variable`.
pub fn server(variable: &str) -> SocketAddr {
    let url = std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: these tests need a server; use `cargo xtask test`")
    });
    let url = Url::parse(&url).expect("the test server's URL is a URL");
    let host = url.host_str().expect("the test server's URL has a host");
    format!("{host}:{}", url.port().expect("the test server's URL has a port")).parse().unwrap()
}

/// A name that no other test has.
pub fn unique(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{count}", process::id())
}

/// What `config` declares, with loopback allowed.
pub fn declared<C: serde::de::DeserializeOwned>(config: &str) -> C {
    toml::from_str(&format!("allow = ['127.0.0.1']\n{config}")).unwrap()
}

/// A config's problem, in words.
pub fn refusal<S: std::fmt::Debug>(made: Result<S, tidegate_sinks::ConfigError>) -> String {
    made.unwrap_err().to_string()
}

/// The environment, as configs want it.
pub fn secrets(name: &str) -> Option<String> {
    env(name)
}

pub fn item<'a>(id: &'a str, topic: &'a str, key: Option<&'a str>) -> Item<'a> {
    Item { topic, key, ..Item::record(id, "{\"n\":1}") }
}

pub async fn send(sink: &dyn Sink, items: &[Item<'_>]) -> Outcome {
    sink.deliver(Delivery { connection: 0, items }).await.outcome
}

/// The verdicts of a group that was answered.
pub async fn verdicts(sink: &dyn Sink, items: &[Item<'_>]) -> Vec<Verdict> {
    match send(sink, items).await {
        Outcome::Answered(verdicts) => verdicts,
        other => panic!("{other:?}"),
    }
}

/// The reason of one that is to be tried again.
pub fn retry(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Retry(reason) => reason,
        other => panic!("{other:?}"),
    }
}

/// Sends until it is done: nothing before may have been anything but absence or silence.
pub async fn until_done(sink: &dyn Sink, items: &[Item<'_>]) {
    let start = Instant::now();
    loop {
        match send(sink, items).await {
            Outcome::Answered(verdicts) if verdicts.iter().all(|it| *it == Verdict::Done) => return,
            Outcome::Unavailable(_) | Outcome::TimedOut if start.elapsed() < PATIENCE => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A server that is not there yet, is there, goes, comes back, and hangs. `sink` makes a sink to an
/// address with the rest of a config.
pub async fn comes_and_goes<S: Sink>(
    server: SocketAddr,
    topic: &str,
    sink: impl Fn(SocketAddr, &str) -> S,
) {
    let mut gate = Gate::closed(server);
    let patient = sink(gate.address(), "");
    let one = [item("one", topic, Some("k"))];
    let Outcome::Unavailable(reason) = send(&patient, &one).await else { panic!() };
    assert!(reason.contains(&format!("cannot connect to {}", gate.address())), "{reason}");
    let error = patient.check().await.unwrap_err().to_string();
    assert!(error.contains("cannot connect to"), "{error}");

    gate.open();
    patient.check().await.unwrap();
    until_done(&patient, &one).await;

    gate.shut();
    assert!(matches!(send(&patient, &one).await, Outcome::Unavailable(_)));
    assert!(matches!(send(&patient, &one).await, Outcome::Unavailable(_)));
    gate.open();
    until_done(&patient, &[item("two", topic, Some("k"))]).await;

    let hasty = sink(gate.address(), "timeout = 1");
    until_done(&hasty, &[item("three", topic, Some("k"))]).await;
    gate.stall();
    assert_eq!(send(&hasty, &[item("four", topic, None)]).await, Outcome::TimedOut);
    // The connection was given up, and a new one gets no greeting.
    let Outcome::Unavailable(reason) = send(&hasty, &one).await else { panic!() };
    assert!(reason.contains("takes no connection in time"), "{reason}");
    gate.open();
    until_done(&hasty, &[item("five", topic, Some("k"))]).await;
}
