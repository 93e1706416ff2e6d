//! Amazon SQS: each item becomes a message of a queue.
//!
//! Done means that SQS has said so for this message: each message of a batch has an answer of its own.
//! FIFO queues keep the order of a key and recognize a message that comes again within five minutes;
//! standard queues do neither.

mod answer;
mod config;
mod request;

pub use config::Config;

use crate::{
    ConfigError, Env,
    aws::{Call, Layout, Publisher, Refusal, Service, Told, settled},
    brighter,
    broker::Broker,
    failure::Failure,
};
use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sqs::{Client, types::QueueAttributeName};
use std::time::Duration;
use tidegate_core::sink::{Answer, Delivery, Item, Sink, SinkCapabilities, SinkError};

/// Sends to queues of SQS.
#[derive(Debug)]
pub struct Sqs(Broker<Publisher<Queues>>);

impl Sqs {
    /// A sink as declared. `env` looks up the variables that hold secrets. Nothing is sent.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        let (queues, timeout) = (config.queues()?, config.timeout()?);
        let region = config::region_of(queues.prefix());
        let reach = config.access(region.as_deref()).reach(env)?;
        let publisher = Publisher::new(reach, queues, config.max_bytes()?, config.envelope);
        Ok(Self(Broker::new("sqs", publisher, config.max_group()?, timeout)))
    }
}

/// How messages get into queues.
struct Queues;

#[async_trait]
impl Service for Queues {
    type Client = Client;

    const NAME: &'static str = "SQS";
    const KIND: &'static str = "queue";
    const SEND: &'static str = "sqs:SendMessage";
    const LOOK: &'static str = "sqs:GetQueueAttributes";
    const BRIGHTER: Layout = brighter::sqs::message;

    fn client(found: &SdkConfig) -> Client {
        Client::new(found)
    }

    async fn send(client: &Client, call: &Call) -> Result<Told, Refusal> {
        let entries = request::entries(call).map_err(|error| Failure::Broken(error.to_string()))?;
        let sent =
            client.send_message_batch().queue_url(&call.place).set_entries(Some(entries)).send();
        let answer = sent.await.map_err(|error| Refusal::of(&error))?;
        Ok(answer::told(&answer))
    }

    async fn look(client: &Client, queue: &str) -> Result<(), Refusal> {
        let asked = client.get_queue_attributes().queue_url(queue);
        let asked = asked.attribute_names(QueueAttributeName::QueueArn).send();
        asked.await.map(drop).map_err(|error| Refusal::of(&error))
    }
}

#[async_trait]
impl Sink for Sqs {
    fn capabilities(&self) -> SinkCapabilities {
        self.0.capabilities()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        self.0.check().await
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        settled(self.0.deliver(delivery).await, Queues::NAME)
    }

    /// The second message of a key may be taken although the first was not, in FIFO queues, too.
    fn one_per_key(&self) -> bool {
        true
    }

    /// Queues are throttled, deleted and forbidden each by itself.
    fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.0.protocol().places.destination(item)
    }
}
