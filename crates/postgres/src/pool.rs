//! Connections, deadlines, and the one way in which statements are sent.

use crate::error;
use deadpool_postgres::{Manager, ManagerConfig, Object, RecyclingMethod, Runtime};
use futures_util::TryStreamExt;
use std::{
    collections::hash_map::RandomState,
    future::Future,
    hash::BuildHasher,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tidegate_core::{StoreError, limits::STORE_DEADLINE};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::{
    Config, NoTls, Row,
    types::{ToSql, Type},
};

/// Connections per process: claims, settlements and renewals are few, and a server's connections are
/// shared by all workers.
const CONNECTIONS: usize = 4;

/// How long a server may take to accept a connection, unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a statement is sent again after a deadlock or a serialization failure. Each time it was
/// rolled back as a whole.
const CONFLICT_RETRIES: u32 = 4;

/// The longest pause before the first of these; it doubles.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// How long the server may take to hear that a statement is no longer wanted.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it has before it is told again.
const CANCEL_AGAIN: Duration = Duration::from_millis(200);

/// A statement's parameters with their types, which spare the server's answer to what they are.
pub(crate) type Params<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// A few connections to one database.
pub(crate) struct Pool {
    connections: deadpool_postgres::Pool,
    /// For messages: user, host and database, without the password.
    place: String,
    statements: AtomicU64,
}

impl Pool {
    /// Connects once, so that a wrong address shows at once.
    pub(crate) async fn connect(url: &str) -> Result<Self, StoreError> {
        let config = parse(url)?;
        let place = place(&config);
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let connections =
            deadpool_postgres::Pool::builder(Manager::from_config(config, NoTls, recycling))
                .max_size(CONNECTIONS)
                .runtime(Runtime::Tokio1)
                .build()
                .map_err(|error| error::bad_address(error.to_string()))?;
        let pool = Self { connections, place, statements: AtomicU64::new(0) };
        let connection = pool.connection("connect", Instant::now() + STORE_DEADLINE).await?;
        drop(connection);
        Ok(pool)
    }

    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Sends one statement, again if it was rolled back because of others, and returns its rows.
    pub(crate) async fn query(
        &self,
        operation: &'static str,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let deadline = Instant::now() + STORE_DEADLINE;
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICT_RETRIES {
            match self.attempt(operation, sql, params, deadline).await? {
                Err(error) if error::is_conflict(&error) => {
                    tracing::debug!(operation, %error, "rolled back because of others; once more");
                    sleep(jitter(pause)).await;
                }
                answer => return answer.map_err(|error| error::failed(operation, error)),
            }
            pause *= 2;
        }
        let last = self.attempt(operation, sql, params, deadline).await?;
        last.map_err(|error| error::failed(operation, error))
    }

    /// The outer error is final; the inner one may be a conflict.
    async fn attempt(
        &self,
        operation: &'static str,
        sql: &str,
        params: Params<'_>,
        deadline: Instant,
    ) -> Result<Result<Vec<Row>, tokio_postgres::Error>, StoreError> {
        let client = self.connection(operation, deadline).await?;
        self.statements.fetch_add(1, Ordering::Relaxed);
        match timeout_at(deadline, client.query_typed(sql, params)).await {
            Ok(answer) => Ok(answer),
            Err(_) => {
                discard(client);
                Err(error::deadline(operation, STORE_DEADLINE))
            }
        }
    }

    /// Sends one statement that changes nothing, and hands its rows over as they come. Whoever takes them
    /// may have had enough: then the connection is given up. Returns whether all rows were taken.
    pub(crate) async fn read(
        &self,
        operation: &'static str,
        sql: &str,
        params: Params<'_>,
        mut take: impl FnMut(Row) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        let deadline = Instant::now() + STORE_DEADLINE;
        let client = self.connection(operation, deadline).await?;
        self.statements.fetch_add(1, Ordering::Relaxed);
        let reading = async {
            let failed = |error| error::failed(operation, error);
            let params = params.iter().map(|(value, kind)| (*value, kind.clone()));
            let mut rows = pin!(client.query_typed_raw(sql, params).await.map_err(failed)?);
            while let Some(row) = rows.try_next().await.map_err(failed)? {
                if !take(row)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let whole = timeout_at(deadline, reading).await;
        match whole {
            Ok(Ok(true)) => Ok(true),
            Ok(unfinished) => {
                discard(client);
                unfinished
            }
            Err(_) => {
                discard(client);
                Err(error::deadline(operation, STORE_DEADLINE))
            }
        }
    }

    /// Calls a function whose parts must each see what others have committed before it, whatever isolation the
    /// database has by default. The end of its transaction is sent before its answer is there: whoever stops
    /// here leaves nothing open.
    pub(crate) async fn call(
        &self,
        operation: &'static str,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.with_connection(operation, STORE_DEADLINE, async |client| {
            let (begun, rows, ended) = tokio::join!(
                biased;
                client.batch_execute("begin isolation level read committed"),
                client.query_typed(sql, params),
                client.batch_execute("commit"),
            );
            begun?;
            let rows = rows?;
            ended.map(|()| rows)
        })
        .await
    }

    /// Carries out `work` on one connection, which is discarded if the deadline passes.
    pub(crate) async fn with_connection<T>(
        &self,
        operation: &'static str,
        within: Duration,
        work: impl AsyncFnOnce(&mut Object) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now() + within;
        let mut client = self.connection(operation, deadline).await?;
        match timeout_at(deadline, work(&mut client)).await {
            Ok(answer) => answer.map_err(|error| error::failed(operation, error)),
            Err(_) => {
                discard(client);
                Err(error::deadline(operation, within))
            }
        }
    }

    async fn connection(
        &self,
        operation: &'static str,
        deadline: Instant,
    ) -> Result<Object, StoreError> {
        match timeout_at(deadline, self.connections.get()).await {
            Ok(answer) => answer.map_err(|e| error::no_connection(operation, &self.place, e)),
            Err(_) => Err(error::deadline(operation, STORE_DEADLINE)),
        }
    }
}

/// Closes a connection whose statement is not waited for any longer, and asks the server to stop it. One that
/// is asked before the statement has arrived does nothing: it is asked until what was sent behind the statement
/// is answered.
fn discard(client: Object) {
    let token = client.cancel_token();
    let client = Object::take(client);
    let stopped = async move {
        loop {
            let _ = token.cancel_query(NoTls).await;
            if timeout(CANCEL_AGAIN, client.batch_execute("")).await.is_ok() {
                return;
            }
        }
    };
    tokio::spawn(quietly(timeout(CANCEL_TIMEOUT, stopped)));
}

/// The server may be gone; there is nobody to tell.
async fn quietly<T>(work: impl Future<Output = T>) {
    work.await;
}

fn parse(url: &str) -> Result<Config, StoreError> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(error::bad_address("the URL does not begin with postgres://".to_owned()));
    }
    let place = url.split(['/', '?']).nth(2).unwrap_or_default();
    if place.matches('@').count() > 1 {
        return Err(error::bad_address("an @ in a password must be written as %40".to_owned()));
    }
    let mut config: Config = url.parse().map_err(error::bad_url)?;
    if config.get_hosts().is_empty() {
        return Err(error::bad_address("the URL names no host".to_owned()));
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_application_name().is_none() {
        config.application_name("tidegate");
    }
    Ok(config)
}

fn place(config: &Config) -> String {
    use tokio_postgres::config::Host;
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = config.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
    format!("{user}{host}:{port}{database}")
}

/// Between half of `longest` and all of it, so that those who met once do not meet again.
pub(crate) fn jitter(longest: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) >> 32;
    longest / 2 + (longest / 2).mul_f64(random as f64 / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests;
