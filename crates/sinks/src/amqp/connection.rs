//! A connection to RabbitMQ, and the channels on it.
//!
//! Each delivery has a channel to itself while it lasts: what closes one, or comes back on it, is
//! then about its own messages.

use super::{answer, known::Known, net};
use crate::{Secret, dialer::Dialer, failure::Failure, server::Server};
use lapin::{
    Channel, ConnectionProperties, Error, ExchangeKind,
    auth::AuthProvider,
    options::{ConfirmSelectOptions, ExchangeDeclareOptions},
    types::{FieldTable, LongString, ShortString},
    uri::{AMQPAuthority, AMQPQueryString, AMQPUri},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How soon a silent connection is noticed: after two of these, in seconds.
const HEARTBEAT: u16 = 20;

/// Where to go, and as whom.
#[derive(Clone, Debug)]
pub struct Account {
    pub server: Server,
    pub vhost: String,
    pub credential: Credential,
}

/// A user and a password.
#[derive(Clone, Debug)]
pub struct Credential {
    pub user: String,
    pub password: Secret,
}

/// An open connection.
pub struct Connection {
    inner: lapin::Connection,
    idle: Mutex<Vec<Channel>>,
    /// The queues that are known to be there.
    pub(super) declared: Mutex<Known>,
}

impl Connection {
    pub async fn open(dialer: &Dialer, account: &Account) -> Result<Self, Failure> {
        let stream = dialer.open(&account.server).await?;
        let properties = ConnectionProperties::default()
            .with_connection_name("tidegate".into())
            .with_auth_provider(account.credential.clone());
        let inner = net::handshake(stream, account.uri(), properties)
            .await
            .map_err(|error| answer::unconnected(&error, &account.server.to_string()))?;
        let (idle, declared) = Default::default();
        Ok(Self { inner, idle, declared })
    }

    pub fn is_alive(&self) -> bool {
        self.inner.status().connected()
    }

    /// Why nothing would be taken now.
    pub fn blocked(&self) -> Option<Failure> {
        let blocked = self.inner.status().blocked();
        let reason = "RabbitMQ takes nothing: it is short of memory or of disk";
        blocked.then(|| Failure::Unavailable(reason.to_owned()))
    }

    /// The most that is sent in one frame.
    pub fn frame_max(&self) -> usize {
        self.inner.configuration().frame_max().try_into().unwrap_or(usize::MAX)
    }

    /// A channel that confirms, for one delivery.
    pub async fn channel(&self) -> Result<Channel, Error> {
        let usable = |channel: &Channel| channel.status().connected();
        while let Some(channel) = self.idle().pop() {
            if usable(&channel) {
                return Ok(channel);
            }
        }
        let channel = self.inner.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    /// Keeps a channel for the next delivery. Everything on it was answered.
    pub fn keep(&self, channel: Channel) {
        self.idle().push(channel);
    }

    /// A channel can be opened, and the exchange is there.
    pub async fn check(&self, exchange: &str) -> Result<(), Failure> {
        let unchecked = |error: Error| answer::unchecked(&error, exchange);
        let channel = self.channel().await.map_err(unchecked)?;
        if !exchange.is_empty() {
            let passive = ExchangeDeclareOptions { passive: true, ..Default::default() };
            let name = ShortString::from(exchange);
            let kind = ExchangeKind::Direct;
            let declared = channel.exchange_declare(name, kind, passive, FieldTable::default());
            declared.await.map_err(unchecked)?;
        }
        self.keep(channel);
        Ok(())
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Channel>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Without the password, which only [`Credential`] gives away.
    fn uri(&self) -> AMQPUri {
        let mut authority = AMQPAuthority { host: self.server.host(), ..Default::default() };
        authority.port = self.server.port;
        authority.userinfo.username.clone_from(&self.credential.user);
        authority.userinfo.password.clear();
        let query = AMQPQueryString { heartbeat: Some(HEARTBEAT), ..Default::default() };
        AMQPUri { authority, vhost: self.vhost.clone(), query, ..Default::default() }
    }
}

impl AuthProvider for Credential {
    fn mechanism(&self) -> ShortString {
        "PLAIN".into()
    }

    fn auth_starter(&self) -> Result<LongString, String> {
        Ok(format!("\0{}\0{}", self.user, self.password.reveal()).into())
    }
}
