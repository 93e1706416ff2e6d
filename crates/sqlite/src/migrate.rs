//! The schema: migrations, its version, and the mark by which a file is known to be ours.

use crate::{
    Sqlite, connect,
    errors::{Failure, bad_address},
};
use async_trait::async_trait;
use rusqlite::{Connection, TransactionBehavior};
use tidegate_core::{
    StoreError,
    migrate::{Migrate, Schema},
};

/// `TIDE`: marks the file as ours, for us and for `file(1)`.
const APPLICATION_ID: i64 = 0x5449_4445;

/// In order; the version of a schema is how many of them it has.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_batches", include_str!("sql/migrations/0001_batches.sql")),
    ("0002_pace", include_str!("sql/migrations/0002_pace.sql")),
    ("0003_loads", include_str!("sql/migrations/0003_loads.sql")),
    ("0004_outbox", include_str!("sql/migrations/0004_outbox.sql")),
    ("0005_relay", include_str!("sql/migrations/0005_relay.sql")),
    ("0006_settled", include_str!("sql/migrations/0006_settled.sql")),
    ("0007_leases", include_str!("sql/migrations/0007_leases.sql")),
    ("0008_numbers", include_str!("sql/migrations/0008_numbers.sql")),
    ("0009_losses", include_str!("sql/migrations/0009_losses.sql")),
    ("0010_steer", include_str!("sql/migrations/0010_steer.sql")),
    ("0011_sinks", include_str!("sql/migrations/0011_sinks.sql")),
    ("0012_names", include_str!("sql/migrations/0012_names.sql")),
];

#[async_trait]
impl Migrate for Sqlite {
    async fn migrate(&self) -> Result<Vec<&'static str>, StoreError> {
        self.writer().call("migrate", migrate).await
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        self.reader().call("read schema", |connection| schema(connection)).await
    }
}

/// All migrations as a script.
pub fn script() -> String {
    let migrations = MIGRATIONS.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n");
    format!(
        "PRAGMA journal_mode = wal;\nBEGIN IMMEDIATE;\n{migrations}\n\
         PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {};\nCOMMIT;\n",
        MIGRATIONS.len()
    )
}

fn migrate(connection: &mut Connection) -> Result<Vec<&'static str>, Failure> {
    if identity(connection)? == Identity::Foreign {
        return Err(foreign(connection).into());
    }
    connect::enable_wal(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut applied = Vec::new();
    for (name, text) in MIGRATIONS.iter().skip(version(&transaction)?) {
        transaction.execute_batch(text)?;
        applied.push(*name);
    }
    if !applied.is_empty() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    }
    transaction.commit()?;
    Ok(applied)
}

fn schema(connection: &Connection) -> Result<Schema, Failure> {
    // All is read at the same moment: another process may be migrating.
    let moment = connection.unchecked_transaction()?;
    let (found, needed) = (version(&moment)?, MIGRATIONS.len());
    Ok(match found {
        0 if mark(&moment)? != APPLICATION_ID => Schema::Missing,
        _ if found < needed => Schema::Outdated { found: found as i64, needed: needed as i64 },
        _ => Schema::Current,
    })
}

/// An empty database may have any version: only one that bears our mark counts.
fn version(connection: &Connection) -> rusqlite::Result<usize> {
    match mark(connection)? {
        APPLICATION_ID => connection.pragma_query_value(None, "user_version", |row| row.get(0)),
        _ => Ok(0),
    }
}

fn mark(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// Whose database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Nobody's yet: it has no tables.
    Empty,
    /// It bears our mark.
    Ours,
    /// It has tables, or another mark.
    Foreign,
}

pub(crate) fn identity(connection: &Connection) -> Result<Identity, Failure> {
    // As above.
    let moment = connection.unchecked_transaction()?;
    let tables: i64 = moment.query_row(include_str!("sql/tables.sql"), [], |row| row.get(0))?;
    Ok(match (mark(&moment)?, tables) {
        (APPLICATION_ID, _) => Identity::Ours,
        (0, 0) => Identity::Empty,
        _ => Identity::Foreign,
    })
}

pub(crate) fn foreign(connection: &Connection) -> StoreError {
    let path = connection.path().unwrap_or_default();
    bad_address(format!("`{path}` is another program's SQLite database; use a file of its own"))
}
