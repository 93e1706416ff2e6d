//! The schema: embedded migrations, each of which may be applied twice.

use crate::{Postgres, decode::get};
use async_trait::async_trait;
use std::{collections::HashSet, time::Duration};
use tidegate_core::{Kind, Migrate, StoreError, migrate::Schema};
use tokio_postgres::{IsolationLevel, Transaction};

struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

/// In the order in which they are applied. A migration that was released never changes.
const MIGRATIONS: [Migration; 13] = [
    Migration {
        version: 1,
        name: "0001_batches",
        sql: include_str!("sql/migrations/0001_batches.sql"),
    },
    Migration { version: 2, name: "0002_pace", sql: include_str!("sql/migrations/0002_pace.sql") },
    Migration {
        version: 3,
        name: "0003_loads",
        sql: include_str!("sql/migrations/0003_loads.sql"),
    },
    Migration {
        version: 4,
        name: "0004_outbox",
        sql: include_str!("sql/migrations/0004_outbox.sql"),
    },
    Migration {
        version: 5,
        name: "0005_adopted",
        sql: include_str!("sql/migrations/0005_adopted.sql"),
    },
    Migration {
        version: 6,
        name: "0006_relay",
        sql: include_str!("sql/migrations/0006_relay.sql"),
    },
    Migration {
        version: 7,
        name: "0007_durable",
        sql: include_str!("sql/migrations/0007_durable.sql"),
    },
    Migration {
        version: 8,
        name: "0008_segments",
        sql: include_str!("sql/migrations/0008_segments.sql"),
    },
    Migration {
        version: 9,
        name: "0009_progress",
        sql: include_str!("sql/migrations/0009_progress.sql"),
    },
    Migration {
        version: 10,
        name: "0010_leases",
        sql: include_str!("sql/migrations/0010_leases.sql"),
    },
    Migration {
        version: 11,
        name: "0011_publish",
        sql: include_str!("sql/migrations/0011_publish.sql"),
    },
    Migration {
        version: 12,
        name: "0012_epoch",
        sql: include_str!("sql/migrations/0012_epoch.sql"),
    },
    Migration {
        version: 14,
        name: "0014_losses",
        sql: include_str!("sql/migrations/0014_losses.sql"),
    },
];

const NEEDED: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Indexes may have to be built.
const MIGRATION_DEADLINE: Duration = Duration::from_secs(3_600);

const LOCK: &str = include_str!("sql/migrate_lock.sql");

#[async_trait]
impl Migrate for Postgres {
    async fn migrate(&self) -> Result<Vec<&'static str>, StoreError> {
        self.pool
            .with_connection("migrate", MIGRATION_DEADLINE, async |client| {
                // What others commit while it waits for a lock is to be seen behind it.
                let isolation = IsolationLevel::ReadCommitted;
                let transaction =
                    client.build_transaction().isolation_level(isolation).start().await?;
                let applied = apply_missing(&transaction).await?;
                transaction.commit().await?;
                Ok(applied)
            })
            .await
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        const OPERATION: &str = "read schema version";
        let sql = include_str!("sql/migrations.sql");
        let rows = match self.pool.query(OPERATION, sql, &[]).await {
            Err(error) if error.kind() == Kind::SchemaOutdated => return Ok(Schema::Missing),
            answer => answer?,
        };
        Ok(match rows.last().map(|row| get(OPERATION, row, "version")).transpose()? {
            None => Schema::Missing,
            Some(found) if found < NEEDED => Schema::Outdated { found, needed: NEEDED },
            Some(_) => Schema::Current,
        })
    }
}

/// All migrations as a script.
pub fn script() -> String {
    let bodies: Vec<&str> = MIGRATIONS.iter().map(|migration| migration.sql).collect();
    format!(
        "begin isolation level read committed;\n\n{};\n\n{}\ncommit;\n",
        LOCK.trim_end(),
        bodies.join("\n")
    )
}

/// The lock comes first: whoever waited for it sees what the other has applied.
async fn apply_missing(
    transaction: &Transaction<'_>,
) -> Result<Vec<&'static str>, tokio_postgres::Error> {
    transaction.batch_execute(LOCK).await?;
    let applied = applied(transaction).await?;
    let mut names = Vec::new();
    for migration in MIGRATIONS.iter().filter(|m| !applied.contains(&m.version)) {
        transaction.batch_execute(migration.sql).await?;
        names.push(migration.name);
    }
    Ok(names)
}

async fn applied(transaction: &Transaction<'_>) -> Result<HashSet<i64>, tokio_postgres::Error> {
    let exist = include_str!("sql/migrations_exist.sql");
    if !transaction.query_typed_one(exist, &[]).await?.try_get::<_, bool>("exist")? {
        return Ok(HashSet::new());
    }
    let rows = transaction.query_typed(include_str!("sql/migrations.sql"), &[]).await?;
    rows.iter().map(|row| row.try_get("version")).collect()
}
