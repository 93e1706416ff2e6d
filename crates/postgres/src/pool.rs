//! Connections, deadlines, and the one way in which statements are sent.

use crate::{
    address::Address,
    connect::{Connection, Manager, Protection},
    error,
    limits::{
        CANCEL_AGAIN, CANCEL_TIMEOUT, CANCEL_TRY, CONFLICT_PAUSE, CONFLICT_RETRIES, CONNECTIONS,
        of_lease,
    },
};
use deadpool::{Runtime, managed::Object};
use futures_util::TryStreamExt;
use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
    ops::{Deref, DerefMut},
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tidegate_core::{StoreError, limits::STORE_DEADLINE};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

/// A statement's parameters with their types, which spare the server's answer to what they are.
pub(crate) type Params<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// What is called, and how much time it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    operation: &'static str,
    bound: Bound,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    Within(Duration),
    /// It is of use only while a lease of this length holds.
    Lease(Duration),
}

impl Call {
    /// A call that must be over within this time.
    pub(crate) fn within(operation: &'static str, within: Duration) -> Self {
        Self { operation, bound: Bound::Within(within) }
    }

    /// A call by which a lease is gained, kept or used.
    pub(crate) fn under(operation: &'static str, lease: Duration) -> Self {
        Self { operation, bound: Bound::Lease(lease) }
    }
}

impl From<&'static str> for Call {
    fn from(operation: &'static str) -> Self {
        Self::within(operation, STORE_DEADLINE)
    }
}

/// Tells statements apart: where the text of one is.
type Statement = usize;

/// A call that has begun.
#[derive(Clone, Copy)]
struct Begun {
    operation: &'static str,
    statement: Statement,
    within: Duration,
    deadline: Instant,
}

/// A few connections to one database.
pub(crate) struct Pool {
    connections: deadpool::managed::Pool<Manager>,
    /// For messages: user, hosts and database, without the password.
    place: String,
    statements: AtomicU64,
    /// For how long the relay on these connections leases its lanes, in ms; zero if it never did.
    lease_ms: AtomicU64,
    /// How many deadlines in a row a statement has missed that has to be over while a lease holds.
    missed: Mutex<HashMap<Statement, u32>>,
}

impl Pool {
    /// Connects once, so that a wrong address shows at once.
    pub(crate) async fn connect(address: &str) -> Result<Self, StoreError> {
        let address = Address::parse(address)?;
        address.tls.warn_if_unverified();
        let place = address.place.clone();
        let connections = deadpool::managed::Pool::builder(Manager::new(address))
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| error::bad_address(error.to_string()))?;
        let pool = Self {
            connections,
            place,
            statements: AtomicU64::new(0),
            lease_ms: AtomicU64::new(0),
            missed: Mutex::default(),
        };
        let lent = pool.connection(&pool.begin("connect".into(), "")).await?;
        lent.finished();
        Ok(pool)
    }

    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Remembers for how long a relay leases its lanes.
    pub(crate) fn lease(&self, lease: Duration) {
        let millis = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        self.lease_ms.store(millis, Ordering::Relaxed);
    }

    /// A call of a relay, which has as much time as its lease allows. Without one it has as much as any other.
    pub(crate) fn leased(&self, operation: &'static str) -> Call {
        match self.lease_ms.load(Ordering::Relaxed) {
            0 => operation.into(),
            millis => Call::under(operation, Duration::from_millis(millis)),
        }
    }

    /// How the latest connection is protected.
    pub(crate) fn protection(&self) -> Option<Protection> {
        self.connections.manager().protection()
    }

    /// Sends one statement, again if it was rolled back because of others, and returns its rows.
    pub(crate) async fn query(
        &self,
        call: impl Into<Call>,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let call = self.begin(call.into(), sql);
        let operation = call.operation;
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICT_RETRIES {
            match self.attempt(&call, sql, params).await? {
                Err(error) if error::is_conflict(&error) => {
                    tracing::debug!(operation, %error, "rolled back because of others; once more");
                    sleep(jitter(pause)).await;
                }
                answer => return answer.map_err(|error| error::failed(operation, error)),
            }
            pause *= 2;
        }
        let last = self.attempt(&call, sql, params).await?;
        last.map_err(|error| error::failed(operation, error))
    }

    /// The outer error is final; the inner one may be a conflict.
    async fn attempt(
        &self,
        call: &Begun,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Result<Vec<Row>, tokio_postgres::Error>, StoreError> {
        let client = self.connection(call).await?;
        self.statements.fetch_add(1, Ordering::Relaxed);
        let answer = timeout_at(call.deadline, client.query_typed(sql, params)).await;
        self.ended(call, client, answer.is_ok());
        answer.map_err(|_| error::deadline(call.operation, call.within))
    }

    /// Sends one statement that changes nothing, and hands its rows over as they come. Whoever takes them
    /// may have had enough: then the connection is given up. Returns whether all rows were taken.
    pub(crate) async fn read(
        &self,
        call: impl Into<Call>,
        sql: &str,
        params: Params<'_>,
        mut take: impl FnMut(Row) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        let call = self.begin(call.into(), sql);
        let client = self.connection(&call).await?;
        self.statements.fetch_add(1, Ordering::Relaxed);
        let reading = async {
            let failed = |error| error::failed(call.operation, error);
            let params = params.iter().map(|(value, kind)| (*value, kind.clone()));
            let mut rows = pin!(client.query_typed_raw(sql, params).await.map_err(failed)?);
            while let Some(row) = rows.try_next().await.map_err(failed)? {
                if !take(row)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let whole = timeout_at(call.deadline, reading).await;
        match whole {
            Ok(Ok(true)) => {
                self.ended(&call, client, true);
                Ok(true)
            }
            // What is left of the answer is not waited for.
            Ok(unfinished) => {
                self.missed().remove(&call.statement);
                unfinished
            }
            Err(_) => {
                self.ended(&call, client, false);
                Err(error::deadline(call.operation, call.within))
            }
        }
    }

    /// Calls a function whose parts must each see what others have committed before it, whatever isolation the
    /// database has by default. The end of its transaction is sent before its answer is there: whoever stops
    /// here leaves nothing open.
    pub(crate) async fn call(
        &self,
        call: impl Into<Call>,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.on_connection(self.begin(call.into(), sql), async |client| {
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
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        self.on_connection(self.begin(Call::within(operation, within), ""), work).await
    }

    async fn on_connection<T>(
        &self,
        call: Begun,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        let mut client = self.connection(&call).await?;
        let answer = timeout_at(call.deadline, work(&mut client)).await;
        self.ended(&call, client, answer.is_ok());
        match answer {
            Ok(answer) => answer.map_err(|error| error::failed(call.operation, error)),
            Err(_) => Err(error::deadline(call.operation, call.within)),
        }
    }

    fn begin(&self, call: Call, sql: &str) -> Begun {
        let (Call { operation, bound }, statement) = (call, sql.as_ptr() as Statement);
        let within = match bound {
            Bound::Within(within) => within,
            Bound::Lease(lease) => {
                of_lease(lease, self.missed().get(&statement).copied().unwrap_or_default())
            }
        };
        Begun { operation, statement, within, deadline: Instant::now() + within }
    }

    /// An answer that came in time gives its connection back; without one, neither this connection nor those that
    /// have been idle since are used again.
    fn ended(&self, call: &Begun, client: Lent, in_time: bool) {
        if in_time {
            client.finished();
            self.missed().remove(&call.statement);
        } else {
            *self.missed().entry(call.statement).or_default() += 1;
            let since = call.deadline.checked_sub(call.within).unwrap_or(call.deadline);
            self.connections.manager().suspect(since.into_std());
        }
    }

    fn missed(&self) -> MutexGuard<'_, HashMap<Statement, u32>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connection(&self, call: &Begun) -> Result<Lent, StoreError> {
        match timeout_at(call.deadline, self.connections.get()).await {
            Ok(Ok(connection)) => Ok(Lent(Some(connection))),
            Ok(Err(error)) => Err(error::no_connection(call.operation, &self.place, error)),
            Err(_) => Err(error::no_answer(call.operation, &self.place, call.within)),
        }
    }
}

/// A connection on which something is under way. Unless that has ended when this is dropped, the connection is
/// closed, and the server is asked to stop.
struct Lent(Option<Object<Manager>>);

impl Lent {
    fn finished(mut self) {
        drop(self.0.take());
    }
}

impl Deref for Lent {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0.as_ref().expect("it is there until it is finished or dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Connection {
        self.0.as_mut().expect("it is there until it is finished or dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(object) = self.0.take() else { return };
        let connection = Object::take(object);
        // Without a runtime, the process ends, and its connections with it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async { drop(timeout(CANCEL_TIMEOUT, stop(connection)).await) });
        }
    }
}

/// Asks the server to stop a statement. One that is asked before the statement has arrived does nothing: it is
/// asked until what was sent behind the statement is answered. The server may be gone; there is nobody to tell.
async fn stop(connection: Connection) {
    let token = connection.cancel_token();
    loop {
        let _ = timeout(CANCEL_TRY, token.cancel_query(connection.tls.patient())).await;
        if timeout(CANCEL_AGAIN, connection.batch_execute("")).await.is_ok() {
            return;
        }
    }
}

/// Between half of `longest` and all of it, so that those who met once do not meet again.
pub(crate) fn jitter(longest: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) >> 32;
    longest / 2 + (longest / 2).mul_f64(random as f64 / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests;
