//! Tables of its own for each test.

use crate::sink::{Behaviour, Recorder};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    Migrate, NewMessage, RetryPolicy, WorkerId,
    outbox::{Pattern, Route},
};
use tidegate_drill::dynamodb::{Faults, Proxy};
use tidegate_dynamodb::DynamoDb;
use tidegate_engine::{
    Relay, RelayOptions, Stop,
    relay::{Plan, PlannedSink, RelayError, RelayReport, TopicPolicy},
};
use tokio::task::JoinHandle;

/// Short, so that the death of a relay is noticed soon.
pub const LEASE: Duration = Duration::from_secs(1);

/// A table behind a proxy.
pub struct Fixture {
    pub proxy: Proxy,
    table: String,
}

impl Fixture {
    /// A proxy, and no table yet.
    pub fn without_table(seed: u64) -> Self {
        let proxy = Proxy::start(&server(), seed).unwrap();
        Self { proxy, table: format!("outbox_{:016x}", rand::random::<u64>()) }
    }

    pub async fn new(seed: u64) -> Self {
        let fixture = Self::without_table(seed);
        fixture.open("").migrate().await.unwrap();
        fixture.proxy.reset_counters();
        fixture
    }

    /// As another process would open it. By default messages are read at once.
    pub fn open(&self, settings: &str) -> Arc<DynamoDb> {
        self.open_at(&self.proxy.url(), settings)
    }

    /// The same table, without the faults of the proxy.
    pub fn direct(&self) -> Arc<DynamoDb> {
        self.direct_with("")
    }

    pub fn direct_with(&self, settings: &str) -> Arc<DynamoDb> {
        self.open_at(&server(), settings)
    }

    fn open_at(&self, url: &str, settings: &str) -> Arc<DynamoDb> {
        let min_age = if settings.contains("min_age=") { "" } else { "&min_age=0ms" };
        let endpoint = url.replace(':', "%3A").replace('/', "%2F");
        let address = format!("dynamodb://{}?endpoint={endpoint}{min_age}{settings}", self.table);
        Arc::new(DynamoDb::configured(&address, config()).unwrap())
    }

    pub fn client(&self) -> aws_sdk_dynamodb::Client {
        let config = config().into_builder().endpoint_url(self.proxy.url());
        let config = config.http_client(tidegate_dynamodb::Transport::new().unwrap()).build();
        aws_sdk_dynamodb::Client::new(&config)
    }

    pub fn table(&self) -> &str {
        &self.table
    }

    pub fn faults(&self, faults: Faults) {
        self.proxy.set_faults(faults);
    }
}

fn server() -> String {
    std::env::var("TIDEGATE_TEST_DYNAMODB").expect("run by cargo xtask test")
}

fn config() -> SdkConfig {
    let credentials = Credentials::new("test", "test", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build()
}

pub fn message(topic: &str, key: Option<&str>, n: usize) -> NewMessage {
    NewMessage {
        topic: topic.to_owned(),
        key: key.map(str::to_owned),
        payload: n.to_string().into_bytes(),
        ..NewMessage::default()
    }
}

/// A relay at work.
pub struct Running {
    stop: Stop,
    run: JoinHandle<Result<RelayReport, RelayError>>,
}

impl Running {
    pub fn start(store: Arc<DynamoDb>, name: &str, sink: &Arc<Recorder>) -> Self {
        Self::with_lease(store, name, sink, LEASE)
    }

    pub fn with_lease(
        store: Arc<DynamoDb>,
        name: &str,
        sink: &Arc<Recorder>,
        lease: Duration,
    ) -> Self {
        Self::with(store, name, sink, lease, false)
    }

    fn with(
        store: Arc<DynamoDb>,
        name: &str,
        sink: &Arc<Recorder>,
        lease: Duration,
        drain: bool,
    ) -> Self {
        let options = RelayOptions {
            lease,
            drain,
            poll: Duration::from_millis(200),
            ..RelayOptions::new(WorkerId(name.to_owned()))
        };
        let relay = Relay::new(store, plan(sink.clone()), options).unwrap();
        let stop = Stop::new();
        let stopped = stop.clone();
        Self { stop, run: tokio::spawn(async move { relay.run(stopped).await }) }
    }

    /// As a process that is killed: nothing is given back.
    pub fn kill(self) {
        self.run.abort();
    }

    pub async fn stop(self) -> RelayReport {
        self.stop.stop();
        self.run.await.unwrap().unwrap()
    }
}

/// Relays until nothing is left.
pub async fn drain(store: Arc<DynamoDb>, sink: &Arc<Recorder>) -> RelayReport {
    drain_with_lease(store, sink, LEASE).await
}

/// The same with a lease of which few renewals are counted, however long it takes.
pub async fn drain_with_lease(
    store: Arc<DynamoDb>,
    sink: &Arc<Recorder>,
    lease: Duration,
) -> RelayReport {
    let name = format!("relay {}", rand::random::<u64>());
    let running = Running::with(store, &name, sink, lease, true);
    tokio::time::timeout(Duration::from_secs(120), running.run).await.unwrap().unwrap().unwrap()
}

fn plan(sink: Arc<Recorder>) -> Plan {
    let name = "recorder".to_owned();
    let route = Route { topics: Pattern("*".to_owned()), sink: name.clone() };
    let retry =
        RetryPolicy { max_attempts: 3, base: Duration::from_millis(50), ..RetryPolicy::default() };
    let policy = TopicPolicy { retry, ..TopicPolicy::default() };
    Plan {
        sinks: vec![PlannedSink { name, sink, pacer: tidegate_pacer::Options::default() }],
        routes: vec![route],
        policies: vec![(Pattern("*".to_owned()), policy)],
    }
}

pub fn recorder() -> Arc<Recorder> {
    Recorder::new(Behaviour::default())
}
