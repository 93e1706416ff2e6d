//! NATS: each item becomes a message of a JetStream stream.
//!
//! Done means that JetStream has acknowledged the message. A stream recognizes a message that comes
//! again, within its duplicate window, by `Nats-Msg-Id`.

mod answer;
mod config;
mod connection;
mod credential;
mod request;

pub use config::{Config, Urls};

use crate::{
    ConfigError, Env,
    broker::{Broker, Protocol, Reply, connect_within},
    client::Settings,
    dialer::Dialer,
    failure::Failure,
    server::{Server, any_secure},
};
use async_trait::async_trait;
use connection::Connection;
use credential::Credential;
use request::Form;
use std::time::Duration;
use tidegate_core::sink::{Answer, Delivery, Item, Sink, SinkCapabilities, SinkError, Verdict};
use tokio::time::{Instant, timeout};

/// Publishes to NATS.
#[derive(Debug)]
pub struct Nats(Broker<JetStream>);

impl Nats {
    /// A sink as declared. `env` looks up the variables that hold secrets. Nothing is sent.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        let (servers, credential) = (config.servers()?, config.credential(env)?);
        let timeout = config.timeout()?;
        let settings = Settings {
            // A server may demand TLS although the address does not.
            secure: any_secure(&servers) || config.ca_file.is_some(),
            timeout,
            ca_file: config.ca_file.as_deref(),
            allow: &config.allow,
        };
        let dialer = Dialer::new(settings, &servers, credential.is_secret())?;
        let protocol = JetStream { servers, dialer, credential, timeout, form: Form::new(config)? };
        Ok(Self(Broker::new("nats", protocol, config.max_group()?, timeout)))
    }
}

/// How messages get to JetStream.
struct JetStream {
    servers: Vec<Server>,
    dialer: Dialer,
    credential: Credential,
    timeout: Duration,
    form: Form,
}

#[async_trait]
impl Protocol for JetStream {
    type Connection = Connection;

    fn place(&self) -> String {
        self.servers.iter().map(Server::to_string).collect::<Vec<_>>().join(" and ")
    }

    /// To the first server that takes it. One that does not answer leaves time for the others.
    async fn connect(&self) -> Result<Connection, Failure> {
        let share = connect_within(self.timeout) / u32::try_from(self.servers.len()).unwrap_or(1);
        let mut last = Failure::Broken("there is no server to connect to".to_owned());
        for server in &self.servers {
            let opening = Connection::open(server, &self.dialer, &self.credential);
            last = match timeout(share, opening).await {
                Ok(Err(failure @ Failure::Broken(_))) => return Err(failure),
                Ok(Err(failure)) => failure,
                Ok(connected) => return connected,
                Err(_) => Failure::Unavailable(format!("{server} takes no connection in time")),
            };
        }
        Err(last)
    }

    fn is_alive(&self, connection: &Connection) -> bool {
        connection.is_alive()
    }

    async fn check(&self, connection: &Connection) -> Result<(), Failure> {
        connection.check().await
    }

    async fn publish(
        &self,
        connection: &Connection,
        items: &[Item<'_>],
        deadline: Instant,
    ) -> Vec<Reply> {
        let mut sent = Vec::with_capacity(items.len());
        for item in items {
            sent.push(match self.form.request(item) {
                Ok(request) => connection.send(request, deadline).await,
                Err(reason) => Err(Ok(Verdict::Dead(reason))),
            });
        }
        let mut replies = Vec::with_capacity(items.len());
        for sent in sent {
            replies.push(match sent {
                Ok(sent) => connection.answer(sent, deadline).await,
                Err(reply) => reply,
            });
        }
        if replies.iter().any(answer::is_unheard)
            && let Some(failure) = connection.why_unheard(deadline).await
        {
            let unheard = replies.iter_mut().filter(|reply| answer::is_unheard(reply));
            unheard.for_each(|reply| *reply = Err(failure.clone()));
        }
        replies
    }
}

#[async_trait]
impl Sink for Nats {
    fn capabilities(&self) -> SinkCapabilities {
        self.0.capabilities()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        self.0.check().await
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        self.0.deliver(delivery).await
    }

    /// A stream without a leader acknowledges nothing, while others do.
    fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.0.protocol().form.subject.destination(item)
    }
}
