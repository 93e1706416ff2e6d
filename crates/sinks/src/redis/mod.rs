//! Redis: each item becomes an entry of a stream, or of the lists that Brighter's consumers read.
//!
//! Done means that Redis has answered the XADD or, for lists, the transaction. It does not recognize a message
//! that comes again after a lost answer: whoever reads it can, by its id.

mod answer;
mod config;
mod connection;
mod lists;
mod request;

pub use config::Config;

use crate::{
    ConfigError, Env, Envelope,
    broker::{Broker, Protocol, Reply},
    client::Settings,
    dialer::Dialer,
    failure::Failure,
    server::Server,
};
use ::redis::{RedisConnectionInfo, cmd};
use async_trait::async_trait;
use connection::Connection;
use futures_util::future::join_all;
use lists::Lists;
use request::Form;
use std::time::Duration;
use tidegate_core::sink::{Answer, Delivery, Item, Sink, SinkCapabilities, SinkError, Verdict};
use tokio::time::{Instant, timeout_at};

/// Appends to streams or lists of Redis.
#[derive(Debug)]
pub struct Redis(Broker<Writer>);

impl Redis {
    /// A sink as declared. `env` looks up the variables that hold secrets. Nothing is sent.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        let (server, info) = config.server(env)?;
        let timeout = config.timeout()?;
        let settings = Settings {
            secure: server.secure,
            timeout,
            ca_file: config.ca_file.as_deref(),
            allow: &config.allow,
        };
        let dialer =
            Dialer::new(settings, std::slice::from_ref(&server), config.password.is_some())?;
        let layout = match config.envelope {
            Envelope::Tidegate => Layout::Streams(Form::new(config)?),
            Envelope::Brighter => Layout::Lists(Lists::new(config)?),
        };
        let protocol = Writer { server, dialer, info, layout };
        Ok(Self(Broker::new("redis", protocol, config.max_group()?, timeout)))
    }
}

/// Where messages are kept.
enum Layout {
    Streams(Form),
    Lists(Lists),
}

/// How messages get to Redis.
struct Writer {
    server: Server,
    dialer: Dialer,
    /// Who asks, and for which database. It holds the password.
    info: RedisConnectionInfo,
    layout: Layout,
}

impl Layout {
    async fn append(&self, connection: &Connection, item: &Item<'_>) -> Reply {
        let form = match self {
            Self::Lists(lists) => return lists.push(connection, item).await,
            Self::Streams(form) => form,
        };
        let request = match form.request(item, connection.largest()) {
            Ok(request) => request,
            Err(reason) => return Ok(Verdict::Dead(reason)),
        };
        match connection.ask(request.command).await {
            Ok(_) => Ok(Verdict::Done),
            Err(error) => answer::refused(&error, &request.stream, answer::STREAM),
        }
    }
}

#[async_trait]
impl Protocol for Writer {
    type Connection = Connection;

    fn place(&self) -> String {
        self.server.to_string()
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let stream = self.dialer.open(&self.server).await?;
        Connection::open(stream, &self.info, &self.place()).await
    }

    fn is_alive(&self, connection: &Connection) -> bool {
        connection.is_alive()
    }

    async fn check(&self, connection: &Connection) -> Result<(), Failure> {
        connection.ask(cmd("PING")).await.map(drop).map_err(|error| answer::failure(&error))
    }

    async fn publish(
        &self,
        connection: &Connection,
        items: &[Item<'_>],
        deadline: Instant,
    ) -> Vec<Reply> {
        join_all(items.iter().map(async |item| {
            let appended = timeout_at(deadline, self.layout.append(connection, item)).await;
            appended.unwrap_or(Err(Failure::TimedOut))
        }))
        .await
    }
}

#[async_trait]
impl Sink for Redis {
    fn capabilities(&self) -> SinkCapabilities {
        self.0.capabilities()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        self.0.check().await
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        self.0.deliver(delivery).await
    }
}
