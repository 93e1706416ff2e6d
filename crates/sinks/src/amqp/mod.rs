//! RabbitMQ: each item becomes a message of an exchange.
//!
//! Done means that RabbitMQ has confirmed the message, which is persistent, and that it went to at
//! least one queue: a message that no queue takes comes back and is not done.

mod answer;
mod brighter;
mod config;
mod connection;
mod known;
mod net;
mod publish;
mod request;

pub use config::{Config, Declare};

use crate::{
    ConfigError, Env,
    broker::{Broker, Protocol, Reply},
    client::Settings,
    dialer::Dialer,
    failure::Failure,
};
use async_trait::async_trait;
use connection::{Account, Connection};
use request::Form;
use std::time::Duration;
use tidegate_core::sink::{Answer, Delivery, Item, Sink, SinkCapabilities, SinkError, Verdict};
use tokio::time::Instant;

/// Publishes to RabbitMQ.
#[derive(Debug)]
pub struct Amqp(Broker<Rabbit>);

impl Amqp {
    /// A sink as declared. `env` looks up the variables that hold secrets. Nothing is sent.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        let (server, vhost) = config.server()?;
        let credential = config.credential(env)?;
        let timeout = config.timeout()?;
        let settings = Settings {
            secure: server.secure,
            timeout,
            ca_file: config.ca_file.as_deref(),
            allow: &config.allow,
        };
        let dialer =
            Dialer::new(settings, std::slice::from_ref(&server), config.password.is_some())?;
        let account = Account { server, vhost, credential };
        let protocol = Rabbit { dialer, account, form: Form::new(config)? };
        Ok(Self(Broker::new("amqp", protocol, config.max_group()?, timeout)))
    }
}

/// How messages get to RabbitMQ.
struct Rabbit {
    dialer: Dialer,
    account: Account,
    form: Form,
}

#[async_trait]
impl Protocol for Rabbit {
    type Connection = Connection;

    fn place(&self) -> String {
        self.account.server.to_string()
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        Connection::open(&self.dialer, &self.account).await
    }

    fn is_alive(&self, connection: &Connection) -> bool {
        connection.is_alive()
    }

    /// One that takes nothing for a while says so; a new one would have to be sent something to find
    /// that out, and that would arrive late.
    fn is_worth_keeping(&self, connection: &Connection) -> bool {
        connection.is_alive() && connection.blocked().is_some()
    }

    async fn check(&self, connection: &Connection) -> Result<(), Failure> {
        connection.check(self.form.exchange()).await
    }

    async fn publish(
        &self,
        connection: &Connection,
        items: &[Item<'_>],
        deadline: Instant,
    ) -> Vec<Reply> {
        if let Some(failure) = connection.blocked() {
            return vec![Err(failure); items.len()];
        }
        let mut requests = Vec::with_capacity(items.len());
        for item in items {
            requests.push(match self.form.request(item, connection.frame_max()) {
                Ok(request) if self.form.declares() => connection
                    .declare(request.routing_key.as_str(), deadline)
                    .await
                    .map(|()| request),
                Ok(request) => Ok(request),
                Err(reason) => Err(Ok(Verdict::Dead(reason))),
            });
        }
        let fates = connection.publish(self.form.exchange(), items, requests, deadline).await;
        answer::judge(fates, items, self.form.exchange())
    }
}

#[async_trait]
impl Sink for Amqp {
    fn capabilities(&self) -> SinkCapabilities {
        self.0.capabilities()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        self.0.check().await
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        self.0.deliver(delivery).await
    }

    /// A quorum queue without a majority confirms nothing, while others do.
    fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.0.protocol().form.routing_key.destination(item)
    }
}
