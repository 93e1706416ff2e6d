//! Prepared statements, counted.

use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction};
use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// What a store has executed so far.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub statements: AtomicU64,
    pub transactions: AtomicU64,
}

/// Runs statements on a connection. A statement is prepared once per connection.
pub(crate) struct Sql<'c> {
    connection: &'c Connection,
    counters: &'c Counters,
}

impl<'c> Sql<'c> {
    pub fn new(connection: &'c Connection, counters: &'c Counters) -> Self {
        Self { connection, counters }
    }

    /// Executes a statement; returns how many rows it changed.
    pub fn execute(&self, text: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.count();
        self.connection.prepare_cached(text)?.execute(params)
    }

    /// The first row, if any.
    pub fn row<T>(
        &self,
        text: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.count();
        self.connection.prepare_cached(text)?.query_row(params, read).optional()
    }

    /// All rows.
    pub fn rows<T>(
        &self,
        text: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.count();
        self.connection.prepare_cached(text)?.query_map(params, read)?.collect()
    }

    /// Shows rows one after the other, until somebody has seen enough.
    pub fn each(
        &self,
        text: &str,
        params: impl Params,
        mut show: impl FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>,
    ) -> rusqlite::Result<()> {
        self.count();
        let mut statement = self.connection.prepare_cached(text)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            if show(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// What is read until the answer is dropped is of one moment.
    pub fn moment(&self) -> rusqlite::Result<Transaction<'_>> {
        self.connection.unchecked_transaction()
    }

    /// The database's clock. Read it once per transaction.
    pub fn now(&self) -> rusqlite::Result<Millis> {
        let now = self.row(include_str!("sql/clock.sql"), [], |row| row.get(0))?;
        now.ok_or(rusqlite::Error::QueryReturnedNoRows).map(Millis)
    }

    fn count(&self) {
        self.counters.statements.fetch_add(1, Relaxed);
    }
}

/// A time by the database's clock: milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(pub i64);

impl Millis {
    /// This time and `duration`.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// How long after `earlier`; nothing if before.
    pub fn since(self, earlier: Millis) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }
}

/// A duration as it is stored.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Numbers as the JSON array that statements take a set as.
pub(crate) fn array<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}
