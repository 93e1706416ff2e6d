//! Tables of the bench's own, behind a proxy.

use super::{TOPICS, sink::plan};
use anyhow::{Context, Result};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tidegate::{
    Migrate, NewMessage, Publish, Sink, Stop,
    dynamodb::{Address, DynamoDb},
    relay::{Relay, RelayError, RelayOptions, RelayReport},
    worker_id,
};
use tidegate_drill::dynamodb::Proxy;
use tokio::task::JoinHandle;

/// Messages that are published in one call.
const CHUNK: usize = 1_000;

/// How long a relay has its lanes that is killed on purpose.
pub const SHORT_LEASE: Duration = Duration::from_secs(2);

/// Where tables are made.
pub struct Tables {
    endpoint: String,
    region: String,
}

impl Tables {
    pub fn new(url: &str) -> Result<Self> {
        let address = Address::parse(url)?;
        let endpoint = address.endpoint.context(
            "the address names no `endpoint`: faults are injected by a proxy, which AWS itself does not let through",
        )?;
        Ok(Self { endpoint, region: address.region.unwrap_or_else(|| "eu-central-1".to_owned()) })
    }

    /// New tables, through a proxy of their own.
    pub async fn create(&self, settings: &str) -> Result<Bench> {
        let proxy = Proxy::start(&self.endpoint, 7)?;
        let name = format!("tidegate_bench_{:016x}", rand_name());
        let bench =
            Bench { proxy, name, region: self.region.clone(), settings: settings.to_owned() };
        bench.open("").await?.migrate().await?;
        bench.proxy.reset_counters();
        Ok(bench)
    }
}

fn rand_name() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    now.unwrap_or_default().as_nanos() as u64
}

/// One table.
pub struct Bench {
    pub proxy: Proxy,
    pub name: String,
    pub region: String,
    settings: String,
}

impl Bench {
    /// As another process would open it.
    pub async fn open(&self, more: &str) -> Result<Arc<DynamoDb>> {
        let endpoint = self.proxy.url().replace(':', "%3A").replace('/', "%2F");
        let (name, region, settings) = (&self.name, &self.region, &self.settings);
        let url = format!("dynamodb://{name}?region={region}&endpoint={endpoint}{settings}{more}");
        Ok(Arc::new(DynamoDb::connect(&url).await?))
    }

    /// Publishes messages of 1 KB. Each says its number within its key. Returns their ids.
    pub async fn publish(&self, messages: usize, keys: usize) -> Result<HashSet<String>> {
        let store = self.open("").await?;
        let message = |n: usize| NewMessage {
            topic: format!("topic-{}", n % keys % TOPICS),
            key: Some(format!("key-{}", n % keys)),
            payload: payload(n),
            ..NewMessage::default()
        };
        let mut ids = HashSet::new();
        for first in (0..messages).step_by(CHUNK) {
            let chunk = (first..messages.min(first + CHUNK)).map(message).collect();
            ids.extend(store.publish(chunk).await?.iter().map(ToString::to_string));
        }
        Ok(ids)
    }

    /// Removes the tables.
    pub async fn drop(self) -> Result<()> {
        let sdk = self.open("").await?.sdk();
        for table in [self.name.clone(), format!("{}_tidegate", self.name)] {
            sdk.delete_table().table_name(table).send().await?;
        }
        self.proxy.stop().await;
        Ok(())
    }
}

/// 1 KB that begins with a number.
fn payload(n: usize) -> Vec<u8> {
    let mut payload = format!("{{\"n\":{n},\"text\":\"").into_bytes();
    payload.resize(1_022, b'x');
    payload.extend(b"\"}");
    payload
}

/// A relay at work.
pub struct Running {
    pub stop: Stop,
    pub run: JoinHandle<Result<RelayReport, RelayError>>,
}

impl Running {
    pub fn start(
        store: Arc<DynamoDb>,
        sink: Arc<dyn Sink>,
        change: impl FnOnce(&mut RelayOptions),
    ) -> Result<Self> {
        let mut options = RelayOptions::new(worker_id());
        change(&mut options);
        let relay = Relay::new(store, plan(sink), options)?;
        let stop = Stop::new();
        let stopped = stop.clone();
        Ok(Self { stop, run: tokio::spawn(async move { relay.run(stopped).await }) })
    }

    /// Until it ends by itself, or is asked to.
    pub async fn end(self) -> Result<RelayReport> {
        Ok(self.run.await??)
    }
}
