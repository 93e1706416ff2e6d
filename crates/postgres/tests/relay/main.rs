//! What goes wrong around a relay on PostgreSQL. A history of what was attempted, committed and seen
//! tells whether anything was lost, invented or overtaken.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod crash;
mod faults;
mod history;
mod load;
mod poison;
#[allow(dead_code, reason = "the other tests use more of it")]
#[path = "../support/proxy.rs"]
mod proxy;
mod server;
mod silence;
mod sink;
#[allow(dead_code, reason = "the other tests use more of it")]
#[path = "../support/mod.rs"]
mod support;
mod went_back;
mod writers;

use history::{Findings, History};
use sink::Recorder;
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_core::{
    RetryPolicy, WorkerId,
    outbox::{Pattern, Route},
};
use tidegate_engine::{
    Relay, RelayOptions, Stop,
    relay::{Counts, Plan, PlannedSink, RelayError, RelayReport, TopicPolicy},
};
use tidegate_postgres::Postgres;
use tokio::task::JoinHandle;

/// What is waited for comes within this time, or the test fails.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long lanes stay with a relay that is not heard of.
const LEASE: Duration = Duration::from_secs(2);

/// A relay at work.
struct Running {
    stop: Stop,
    run: JoinHandle<Result<RelayReport, RelayError>>,
}

impl Running {
    /// Everything goes to a sink that writes the history.
    fn start(store: Arc<Postgres>, history: &Arc<History>, lease: Duration) -> Self {
        Self::start_with(store, Recorder::new(history, BTreeSet::new()), lease)
    }

    fn start_with(store: Arc<Postgres>, sink: Arc<Recorder>, lease: Duration) -> Self {
        Self::start_plan(store, plan(sink), lease)
    }

    fn start_plan(store: Arc<Postgres>, plan: Plan, lease: Duration) -> Self {
        let options = RelayOptions { lease, ..RelayOptions::new(WorkerId("a relay".to_owned())) };
        let relay = Relay::new(store, plan, options).unwrap();
        let stop = Stop::new();
        let stopped = stop.clone();
        Self { stop, run: tokio::spawn(async move { relay.run(stopped).await }) }
    }

    /// Nothing may have ended it before.
    async fn stop(self) -> Counts {
        assert!(!self.run.is_finished(), "it ended by itself: {:?}", self.run.await);
        self.stop.stop();
        self.run.await.unwrap().unwrap().counts
    }
}

/// What fails is tried again soon, and never dies.
fn patient(sink: Arc<Recorder>) -> Plan {
    let (base, cap) = (Duration::from_millis(100), Duration::from_millis(500));
    let retry = RetryPolicy { max_attempts: u32::MAX, base, cap };
    let policy = TopicPolicy { retry, ..TopicPolicy::default() };
    Plan { policies: vec![(Pattern("*".to_owned()), policy)], ..plan(sink) }
}

fn plan(sink: Arc<Recorder>) -> Plan {
    let name = "recorder".to_owned();
    let route = Route { topics: Pattern("*".to_owned()), sink: name.clone() };
    let pacer = tidegate_pacer::Options::default();
    Plan {
        sinks: vec![PlannedSink { name, sink, pacer }],
        routes: vec![route],
        policies: Vec::new(),
    }
}

/// Polls until something holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until all that was committed is delivered. Returns what is wrong all the same.
async fn findings(history: &History) -> Findings {
    let start = Instant::now();
    while start.elapsed() < DEADLINE && !history.judge().lost.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    history.judge()
}
