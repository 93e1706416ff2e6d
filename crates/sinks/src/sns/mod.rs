//! Amazon SNS: each item becomes a message of a topic, which hands it to its subscribers.
//!
//! Done means that SNS has said so for this message: each message of a batch has an answer of its own.
//! FIFO topics keep the order of a key and recognize a message that comes again within five minutes;
//! standard topics do neither.

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
use aws_sdk_sns::Client;
use std::time::Duration;
use tidegate_core::sink::{Answer, Delivery, Item, Sink, SinkCapabilities, SinkError};

/// Publishes to topics of SNS.
#[derive(Debug)]
pub struct Sns(Broker<Publisher<Topics>>);

impl Sns {
    /// A sink as declared. `env` looks up the variables that hold secrets. Nothing is sent.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        let (topics, timeout) = (config.topics()?, config.timeout()?);
        let region = config::region_of(topics.prefix());
        let reach = config.access(region).reach(env)?;
        let publisher = Publisher::new(reach, topics, config::MAX_BYTES, config.envelope);
        Ok(Self(Broker::new("sns", publisher, config.max_group()?, timeout)))
    }
}

/// How messages get to topics.
struct Topics;

#[async_trait]
impl Service for Topics {
    type Client = Client;

    const NAME: &'static str = "SNS";
    const KIND: &'static str = "topic";
    const SEND: &'static str = "sns:Publish";
    const LOOK: &'static str = "sns:GetTopicAttributes";
    const BRIGHTER: Layout = brighter::sns::notification;

    fn client(found: &SdkConfig) -> Client {
        Client::new(found)
    }

    async fn send(client: &Client, call: &Call) -> Result<Told, Refusal> {
        let entries = request::entries(call).map_err(|error| Failure::Broken(error.to_string()))?;
        let sent = client.publish_batch().topic_arn(&call.place);
        let sent = sent.set_publish_batch_request_entries(Some(entries)).send();
        let answer = sent.await.map_err(|error| Refusal::of(&error))?;
        Ok(answer::told(&answer))
    }

    async fn look(client: &Client, topic: &str) -> Result<(), Refusal> {
        let asked = client.get_topic_attributes().topic_arn(topic).send();
        asked.await.map(drop).map_err(|error| Refusal::of(&error))
    }
}

#[async_trait]
impl Sink for Sns {
    fn capabilities(&self) -> SinkCapabilities {
        self.0.capabilities()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        self.0.check().await
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        settled(self.0.deliver(delivery).await, Topics::NAME)
    }

    /// The second message of a key may be taken although the first was not, in FIFO topics, too.
    fn one_per_key(&self) -> bool {
        true
    }

    /// Topics are throttled, deleted and forbidden each by itself.
    fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.0.protocol().places.destination(item)
    }
}
