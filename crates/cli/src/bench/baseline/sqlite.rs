//! One row per run in a SQLite file. Its one writer is shared: SQLite has no other way.

use super::{Finished, Session, Table};
use crate::bench::scratch;
use rusqlite::{Connection, Params, TransactionBehavior, params};
use std::sync::{Arc, Mutex, MutexGuard};
use tempfile::TempDir;

const CREATE: &str = "
    CREATE TABLE run (
        id INTEGER NOT NULL PRIMARY KEY,
        status TEXT NOT NULL DEFAULT 'pending',
        started_ms INTEGER,
        finished_ms INTEGER
    ) STRICT;
    CREATE INDEX run_pending ON run (id) WHERE status = 'pending';
    CREATE TABLE result (run_id INTEGER NOT NULL PRIMARY KEY, body TEXT NOT NULL) STRICT;";

const ENQUEUE: &str = "
    WITH RECURSIVE number (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?1)
    INSERT INTO run (id) SELECT n FROM number";

const LOAD: &str = "SELECT status FROM run WHERE id = ?1";

const CLAIM: &str = "
    UPDATE run SET status = 'running', started_ms = unixepoch() * 1000
    WHERE id = ?1 AND status = 'pending'";

const DELETE: &str = "DELETE FROM result WHERE run_id = ?1";

const INSERT: &str = "INSERT INTO result (run_id, body) VALUES (?1, ?2)";

const COMPLETE: &str =
    "UPDATE run SET status = 'completed', finished_ms = unixepoch() * 1000 WHERE id = ?1";

const CLAIM_ROWS: &str = "
    UPDATE run SET status = 'running', started_ms = unixepoch() * 1000
    WHERE id IN (SELECT id FROM run WHERE status = 'pending' ORDER BY id LIMIT ?1)
    RETURNING id";

const INSERT_ROWS: &str = "
    INSERT INTO result (run_id, body)
    SELECT ids.value, results.value
    FROM json_each(?1) AS ids JOIN json_each(?2) AS results ON results.key = ids.key";

const COMPLETE_ROWS: &str = "
    UPDATE run SET status = 'completed', finished_ms = unixepoch() * 1000
    WHERE id IN (SELECT value FROM json_each(?1))";

/// Tables in a file of the bench's own.
pub struct Tables {
    writer: Writer,
    /// Goes with the file in it.
    directory: TempDir,
}

impl Tables {
    pub fn create() -> anyhow::Result<Self> {
        let directory = scratch()?;
        let connection = Connection::open(directory.path().join("rows.db"))?;
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch(CREATE)?;
        Ok(Self { writer: Writer(Arc::new(Mutex::new(connection))), directory })
    }
}

impl Table for Tables {
    type Session = Writer;

    async fn enqueue(&self, runs: u64) -> anyhow::Result<()> {
        self.writer.execute(ENQUEUE, params![runs as i64])
    }

    async fn session(&self) -> anyhow::Result<Writer> {
        Ok(self.writer.clone())
    }

    async fn remove(self) -> anyhow::Result<()> {
        drop(self.writer);
        Ok(self.directory.close()?)
    }
}

/// The one connection.
#[derive(Clone)]
pub struct Writer(Arc<Mutex<Connection>>);

impl Writer {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }

    fn execute(&self, sql: &str, params: impl Params) -> anyhow::Result<()> {
        self.connection().prepare_cached(sql)?.execute(params)?;
        Ok(())
    }
}

impl Session for Writer {
    async fn load(&mut self, id: i64) -> anyhow::Result<()> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(LOAD)?;
        Ok(statement.query_row([id], |row| row.get::<_, String>(0)).map(drop)?)
    }

    async fn claim(&mut self, id: i64) -> anyhow::Result<()> {
        self.execute(CLAIM, [id])
    }

    async fn delete_results(&mut self, id: i64) -> anyhow::Result<()> {
        self.execute(DELETE, [id])
    }

    async fn insert_result(&mut self, id: i64, result: &str) -> anyhow::Result<()> {
        self.execute(INSERT, params![id, result])
    }

    async fn complete(&mut self, id: i64) -> anyhow::Result<()> {
        self.execute(COMPLETE, [id])
    }

    async fn claim_rows(&mut self, most: i64) -> anyhow::Result<Vec<i64>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(CLAIM_ROWS)?;
        let ids = statement.query_map([most], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    async fn flush(&mut self, finished: &Finished) -> anyhow::Result<()> {
        let ids = serde_json::to_string(&finished.ids)?;
        let results = serde_json::to_string(&finished.results)?;
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.prepare_cached(INSERT_ROWS)?.execute([&ids, &results])?;
        transaction.prepare_cached(COMPLETE_ROWS)?.execute([&ids])?;
        Ok(transaction.commit()?)
    }
}
