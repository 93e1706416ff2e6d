//! The schema: embedded migrations, each of which may be applied twice.

use crate::{Adopted, Postgres, decode::get, limits::MIGRATION_DEADLINE, pool::Pool};
use async_trait::async_trait;
use std::collections::HashSet;
use tidegate_core::{Class, Kind, Migrate, StoreError, migrate::Schema};
use tokio_postgres::{IsolationLevel, Transaction};

struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

/// In the order in which they are applied. A migration that was released never changes.
const MIGRATIONS: [Migration; 25] = [
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
        version: 13,
        name: "0013_steer",
        sql: include_str!("sql/migrations/0013_steer.sql"),
    },
    Migration {
        version: 14,
        name: "0014_losses",
        sql: include_str!("sql/migrations/0014_losses.sql"),
    },
    Migration {
        version: 15,
        name: "0015_sinks",
        sql: include_str!("sql/migrations/0015_sinks.sql"),
    },
    Migration { version: 16, name: "0016_due", sql: include_str!("sql/migrations/0016_due.sql") },
    Migration {
        version: 17,
        name: "0017_adopted",
        sql: include_str!("sql/migrations/0017_adopted.sql"),
    },
    Migration {
        version: 18,
        name: "0018_retention",
        sql: include_str!("sql/migrations/0018_retention.sql"),
    },
    Migration {
        version: 19,
        name: "0019_checks",
        sql: include_str!("sql/migrations/0019_checks.sql"),
    },
    Migration {
        version: 20,
        name: "0020_noted_keys",
        sql: include_str!("sql/migrations/0020_noted_keys.sql"),
    },
    Migration {
        version: 21,
        name: "0021_take_over",
        sql: include_str!("sql/migrations/0021_take_over.sql"),
    },
    Migration {
        version: 22,
        name: "0022_retention_beside_claims",
        sql: include_str!("sql/migrations/0022_retention_beside_claims.sql"),
    },
    Migration {
        version: 23,
        name: "0023_adopted_due",
        sql: include_str!("sql/migrations/0023_adopted_due.sql"),
    },
    Migration { version: 24, name: "0024_keys", sql: include_str!("sql/migrations/0024_keys.sql") },
    Migration {
        version: 25,
        name: "0025_settle",
        sql: include_str!("sql/migrations/0025_settle.sql"),
    },
];

const NEEDED: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

const LOCK: &str = include_str!("sql/migrate_lock.sql");

/// A store of batches and messages, which are in UTF-8.
#[async_trait]
impl Migrate for Postgres {
    async fn migrate(&self) -> Result<Vec<&'static str>, StoreError> {
        check_encoding(&self.pool).await?;
        migrate(&self.pool).await
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        let schema = schema(&self.pool).await?;
        if schema != Schema::Missing {
            check_encoding(&self.pool).await?;
        }
        Ok(schema)
    }
}

/// What is remembered about the table of an application, in a database that is not ours to choose.
#[async_trait]
impl Migrate for Adopted {
    async fn migrate(&self) -> Result<Vec<&'static str>, StoreError> {
        migrate(self.pool()).await
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        schema(self.pool()).await
    }
}

/// One text that the server cannot convert, or that it took without knowing what it is, would fail every claim or
/// settlement that comes across it.
async fn check_encoding(pool: &Pool) -> Result<(), StoreError> {
    const OPERATION: &str = "check the encoding";
    let rows = pool.query(OPERATION, include_str!("sql/encoding.sql"), &[]).await?;
    let encoding: Option<&str> =
        rows.first().map(|row| get(OPERATION, row, "encoding")).transpose()?;
    match encoding {
        None | Some("UTF8") => Ok(()),
        Some(other) => {
            let message = format!(
                "the encoding of the database is {other}, and a store must have UTF8, which can hold every \
                 message and result; use another database (`create database NAME encoding 'UTF8' \
                 template template0`). The outbox table of an application in this database can be \
                 relayed all the same: name it with --preset, or by [outbox] in tidegate.toml"
            );
            Err(StoreError::new(Kind::Refused, Class::Permanent, OPERATION, message))
        }
    }
}

async fn migrate(pool: &Pool) -> Result<Vec<&'static str>, StoreError> {
    pool.with_connection("migrate", MIGRATION_DEADLINE, async |client| {
        // What others commit while it waits for a lock is to be seen behind it.
        let isolation = IsolationLevel::ReadCommitted;
        let transaction = client.build_transaction().isolation_level(isolation).start().await?;
        let applied = apply_missing(&transaction).await?;
        transaction.commit().await?;
        Ok(applied)
    })
    .await
}

async fn schema(pool: &Pool) -> Result<Schema, StoreError> {
    const OPERATION: &str = "read schema version";
    let sql = include_str!("sql/migrations.sql");
    let rows = match pool.query(OPERATION, sql, &[]).await {
        Err(error) if error.kind() == Kind::SchemaOutdated => return Ok(Schema::Missing),
        answer => answer?,
    };
    Ok(match rows.last().map(|row| get(OPERATION, row, "version")).transpose()? {
        None => Schema::Missing,
        Some(found) if found < NEEDED => Schema::Outdated { found, needed: NEEDED },
        Some(_) => Schema::Current,
    })
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
