//! Making connections: one server after the other, encrypted as the address says.

use crate::{
    address::{Address, Server},
    error::no_connection,
    limits::{IDLE_UNTRIED, TRIAL},
    tls::{Connector, Failure, Mode, Settings, Verification},
};
use deadpool::managed::{self, Metrics, PoolError, RecycleError, RecycleResult};
use std::{
    error::Error as _,
    fmt,
    hash::{BuildHasher, RandomState},
    ops::{Deref, DerefMut},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tidegate_core::StoreError;
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{Client, Config, config::SslMode, error::SqlState};

/// A connection, and what drives it.
pub(crate) struct Connection {
    client: Client,
    /// Dropped behind the client.
    driver: Driver,
    /// Speaks TLS when a statement has to be canceled.
    pub tls: Connector,
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// Drives a connection, and ends it when it is dropped.
struct Driver(Option<JoinHandle<()>>);

impl Drop for Driver {
    /// A farewell to a server that is silent would take for ever.
    fn drop(&mut self) {
        if let Some(driver) = &self.0 {
            driver.abort();
        }
    }
}

/// A connection beside those of a store, made in the same way: encrypted and verified as the address says. It ends
/// with the client.
pub async fn client(address: &str) -> Result<Client, StoreError> {
    const OPERATION: &str = "connect";
    let address = Address::parse(address)?;
    let place = address.place.clone();
    let connected = Manager::new(address).any_server().await;
    let connected =
        connected.map_err(|error| no_connection(OPERATION, &place, PoolError::Backend(error)));
    let Connection { client, mut driver, .. } = connected?;
    driver.0 = None;
    Ok(client)
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// The server, or the way to it.
    Postgres(tokio_postgres::Error),
    /// What is needed to speak TLS.
    Tls(Failure),
    /// It took too long.
    Timeout(Duration),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(error) => error.fmt(f),
            Self::Tls(failure) => failure.fmt(f),
            Self::Timeout(within) => {
                write!(f, "there was no answer to the login within {} s", within.as_secs())
            }
        }
    }
}

impl std::error::Error for ConnectError {}

/// How a connection is protected against others on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It leaves this machine nowhere: a Unix socket.
    Local,
    /// Everybody on the way can read and change it.
    Plain,
    /// It is encrypted, but with whom is not known.
    Unverified {
        /// The version of TLS.
        version: &'static str,
    },
    /// It is encrypted, with a server that a trusted authority has certified.
    Verified {
        /// The version of TLS.
        version: &'static str,
        /// Whether it is certified for the name in the address.
        by_name: bool,
    },
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("it is a Unix socket on this machine"),
            Self::Plain => f.write_str("it is not encrypted"),
            Self::Unverified { version } => write!(
                f,
                "it is encrypted ({version}), but the server's certificate is not verified: \
                 use sslmode=verify-full"
            ),
            Self::Verified { version, by_name: true } => {
                write!(f, "it is encrypted ({version}), and the server's certificate is verified")
            }
            Self::Verified { version, by_name: false } => write!(
                f,
                "it is encrypted ({version}), and the server's authority is verified, not its name"
            ),
        }
    }
}

/// Makes connections, and says which can still be used.
pub(crate) struct Manager {
    servers: Vec<Server>,
    tls: Settings,
    any_first: bool,
    /// The server that is tried first: the one that answered last.
    first: AtomicUsize,
    /// Connections that were handed out before this are not used again.
    silent_since: Mutex<Option<Instant>>,
    protection: Mutex<Option<Protection>>,
}

impl Manager {
    pub(crate) fn new(address: Address) -> Self {
        let Address { servers, tls, any_first, .. } = address;
        Self {
            servers,
            tls,
            any_first,
            first: AtomicUsize::new(0),
            silent_since: Mutex::default(),
            protection: Mutex::default(),
        }
    }

    /// How the latest connection is protected.
    pub(crate) fn protection(&self) -> Option<Protection> {
        *self.protection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection did not answer to what was sent at `since`: others that have been idle from before may
    /// be as silent.
    pub(crate) fn suspect(&self, since: Instant) {
        let mut silent = self.silent_since.lock().unwrap_or_else(PoisonError::into_inner);
        *silent = Some(silent.map_or(since, |known| known.max(since)));
    }

    fn is_suspect(&self, metrics: &Metrics) -> bool {
        let silent = self.silent_since.lock().unwrap_or_else(PoisonError::into_inner);
        silent.is_some_and(|since| metrics.recycled.unwrap_or(metrics.created) <= since)
    }

    /// Tries one server after the other, beginning with the one that answered last.
    async fn any_server(&self) -> Result<Connection, ConnectError> {
        let count = self.servers.len();
        let start = match self.any_first {
            true => RandomState::new().hash_one(0) as usize,
            false => self.first.load(Relaxed),
        };
        let mut failed = None;
        for n in (0..count).map(|n| (start.wrapping_add(n)) % count) {
            let server = &self.servers[n];
            let attempt = Attempt { first: &self.first, next: (n + 1) % count };
            match timeout(server.timeout, self.connect(server)).await {
                Ok(Ok(connection)) => {
                    attempt.succeeded(n);
                    return Ok(connection);
                }
                Ok(Err(error)) => failed = Some(error),
                Err(_) => failed = Some(ConnectError::Timeout(server.timeout)),
            }
        }
        Err(failed.unwrap_or(ConnectError::Timeout(Duration::ZERO)))
    }

    async fn connect(&self, server: &Server) -> Result<Connection, ConnectError> {
        if server.is_local || self.tls.mode == Mode::Disable {
            return self.connect_by(server, &server.config, Connector::never()).await;
        }
        let tls = Connector::new(&self.tls).map_err(ConnectError::Tls)?;
        match self.connect_by(server, &server.config, tls).await {
            Err(error) if self.tls.mode == Mode::Prefer && may_be_plain(&server.config, &error) => {
                let mut plain = server.config.clone();
                plain.ssl_mode(SslMode::Disable);
                let connection = self.connect_by(server, &plain, Connector::never()).await;
                connection.map_err(|_| error)
            }
            answer => answer,
        }
    }

    async fn connect_by(
        &self,
        server: &Server,
        config: &Config,
        tls: Connector,
    ) -> Result<Connection, ConnectError> {
        let connected = config.connect(tls.clone()).await.map_err(ConnectError::Postgres)?;
        let (client, connection) = connected;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("a connection to PostgreSQL has ended: {error}");
            }
        });
        let protection = match (tls.version(), self.tls.verification) {
            (None, _) if server.is_local => Protection::Local,
            (None, _) => Protection::Plain,
            (Some(version), Verification::None) => Protection::Unverified { version },
            (Some(version), verification) => {
                Protection::Verified { version, by_name: verification == Verification::Name }
            }
        };
        *self.protection.lock().unwrap_or_else(PoisonError::into_inner) = Some(protection);
        Ok(Connection { client, driver: Driver(Some(driver)), tls })
    }
}

/// Whether a server that is preferred to be spoken to by TLS refused just that, as libpq judges it. Whoever binds
/// the login to TLS does not want another one.
fn may_be_plain(config: &Config, error: &ConnectError) -> bool {
    use tokio_postgres::config::ChannelBinding::Require;
    let ConnectError::Postgres(error) = error else { return false };
    let of_tls = error.source().and_then(|source| source.downcast_ref::<Failure>());
    let is_refused = error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    config.get_channel_binding() != Require && (of_tls.is_some() || is_refused)
}

/// While it lasts, nothing is known; if it fails, or is given up, the next server comes first.
struct Attempt<'m> {
    first: &'m AtomicUsize,
    next: usize,
}

impl Attempt<'_> {
    fn succeeded(mut self, server: usize) {
        self.next = server;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.first.store(self.next, Relaxed);
    }
}

impl managed::Manager for Manager {
    type Type = Connection;
    type Error = ConnectError;

    async fn create(&self) -> Result<Connection, ConnectError> {
        self.any_server().await
    }

    async fn recycle(
        &self,
        connection: &mut Connection,
        metrics: &Metrics,
    ) -> RecycleResult<ConnectError> {
        if connection.is_closed() || self.is_suspect(metrics) {
            return Err(RecycleError::message("it is closed, or does not answer"));
        }
        if metrics.last_used() > IDLE_UNTRIED {
            let begun = Instant::now();
            let tried = timeout(TRIAL, connection.batch_execute("")).await;
            if !matches!(tried, Ok(Ok(()))) {
                self.suspect(begun);
                return Err(RecycleError::message("it does not answer"));
            }
        }
        Ok(())
    }
}
