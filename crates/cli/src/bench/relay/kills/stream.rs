//! A stream of the bench's own in JetStream.

use super::{
    flaky::{FAILED, RELAY},
    history::Arrival,
    writers::{Payload, TOPIC},
};
use anyhow::{Context, Result};
use async_nats::{
    HeaderMap,
    header::NATS_MESSAGE_ID,
    jetstream::{self, consumer::pull::OrderedConfig, message::Message, stream::Config},
};
use futures_util::StreamExt;
use std::{str::FromStr, time::Duration};
use tokio::time::timeout;

/// The shortest that NATS allows: what is sent again is seen, and not hidden by the server.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(100);

/// A server that is silent for so long will stay so.
const SILENCE: Duration = Duration::from_secs(30);

/// A stream that nobody else knows.
pub struct Stream {
    /// Subjects begin with it.
    pub name: String,
    jetstream: jetstream::Context,
    stream: jetstream::stream::Stream,
}

impl Stream {
    pub async fn create(url: &str) -> Result<Self> {
        let client = async_nats::connect(url)
            .await
            .context("cannot connect to the NATS server that --nats names")?;
        let jetstream = jetstream::new(client);
        let name = format!("tidegate-bench-{}", tidegate::worker_id().0);
        let config = Config {
            name: name.clone(),
            subjects: vec![format!("{name}.{TOPIC}")],
            duplicate_window: DUPLICATE_WINDOW,
            ..Config::default()
        };
        let stream = jetstream
            .create_stream(config)
            .await
            .context("cannot create a stream for the bench: use a server with JetStream")?;
        Ok(Self { name, jetstream, stream })
    }

    /// All that arrived, in order.
    pub async fn read(&mut self) -> Result<Vec<Arrival>> {
        let count = self.stream.info().await?.state.messages as usize;
        let consumer = self.stream.create_consumer(OrderedConfig::default()).await?;
        let mut messages = consumer.messages().await?;
        let mut arrivals = Vec::with_capacity(count);
        while arrivals.len() < count {
            let next = timeout(SILENCE, messages.next()).await;
            let message = next.context("the stream of the bench cannot be read to its end")?;
            let message = message.context("the stream of the bench ended early")??;
            arrivals.push(arrival(&message)?);
        }
        Ok(arrivals)
    }

    pub async fn delete(self) -> Result<()> {
        let deleted = self.jetstream.delete_stream(&self.name).await;
        deleted.with_context(|| format!("cannot delete the stream {} of the bench", self.name))?;
        Ok(())
    }
}

fn arrival(message: &Message) -> Result<Arrival> {
    let Payload { key, place } =
        serde_json::from_slice(&message.payload).context("a message is not the bench's own")?;
    let headers = message.headers.as_ref().context("a message has no headers")?;
    // The name of the outbox comes first.
    let id = number(headers, NATS_MESSAGE_ID.as_ref())?;
    let (relay, failed) = (number(headers, RELAY)?, number(headers, FAILED)?);
    Ok(Arrival { key, place, id, relay, failed })
}

/// The number at the end of a header.
fn number<N: FromStr>(headers: &HeaderMap, name: &str) -> Result<N> {
    let value = headers.get(name).and_then(|value| value.as_str().rsplit('-').next());
    let number = value.and_then(|value| value.parse().ok());
    number.with_context(|| format!("a message has no number in its header {name}"))
}
