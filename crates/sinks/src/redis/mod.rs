//! Redis: each item becomes an entry of a stream.
//!
//! Done means that Redis has answered the XADD. It does not recognize an entry that comes again after
//! a lost answer: whoever reads the stream can, by the field `id`.

mod answer;
mod config;
mod connection;
mod request;

pub use config::Config;

use crate::{
    ConfigError, Env,
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
use request::Form;
use std::time::Duration;
use tidegate_core::sink::{Answer, Delivery, Item, Sink, SinkCapabilities, SinkError, Verdict};
use tokio::time::{Instant, timeout_at};

/// Appends to streams of Redis.
#[derive(Debug)]
pub struct Redis(Broker<Streams>);

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
        let protocol = Streams { server, dialer, info, form: Form::new(config)? };
        Ok(Self(Broker::new("redis", protocol, config.max_group()?, timeout)))
    }
}

/// How messages get into streams.
struct Streams {
    server: Server,
    dialer: Dialer,
    /// Who asks, and for which database. It holds the password.
    info: RedisConnectionInfo,
    form: Form,
}

#[async_trait]
impl Protocol for Streams {
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
            let request = match self.form.request(item, connection.largest()) {
                Ok(request) => request,
                Err(reason) => return Ok(Verdict::Dead(reason)),
            };
            match timeout_at(deadline, connection.ask(request.command)).await {
                Ok(Ok(_)) => Ok(Verdict::Done),
                Ok(Err(error)) => answer::refused(&error, &request.stream),
                Err(_) => Err(Failure::TimedOut),
            }
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
