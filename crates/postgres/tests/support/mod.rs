//! A fresh database for each test, on a server that `cargo xtask test` starts.

use std::{
    env, process,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};
use tidegate_core::{Migrate, outbox::Epoch};
use tidegate_postgres::Postgres;
use tokio_postgres::NoTls;
use url::Url;

/// Names the URL of a superuser on a PostgreSQL server.
pub const POSTGRES: &str = "TIDEGATE_TEST_POSTGRES";

/// Names the same through pgbouncer in transaction mode.
#[allow(dead_code, reason = "not every test binary goes through pgbouncer")]
pub const PGBOUNCER: &str = "TIDEGATE_TEST_PGBOUNCER";

/// The epoch of stores in databases of tests, so that they need not ask for it.
const EPOCH: &str = "00000000-0000-0000-0000-000000000001";

/// The epoch of a store in a database of a test.
#[allow(dead_code, reason = "not every test binary settles by itself")]
pub fn epoch() -> Epoch {
    Epoch(EPOCH.to_owned())
}

/// A database that is dropped with this value.
pub struct Database {
    server: Url,
    name: String,
}

impl Database {
    /// Creates a database on the server whose URL is in the environment under `variable`.
    pub async fn create(variable: &str) -> Self {
        Self::create_in(variable, "UTF8").await
    }

    /// The same, with another encoding.
    pub async fn create_in(variable: &str, encoding: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let url = env::var(variable).unwrap_or_else(|_| {
            panic!("{variable} is not set: these tests need a server; use `cargo xtask test`")
        });
        let server = Url::parse(&url).expect("the test server's URL is a URL");
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate_test_{}_{count}", process::id());
        execute(&server, &format!("drop database if exists {name} with (force)")).await;
        let kind = format!("encoding '{encoding}' locale 'C' template template0");
        execute(&server, &format!("create database {name} {kind}")).await;
        Self { server, name }
    }

    /// Where it is.
    pub fn url(&self) -> Url {
        let mut url = self.server.clone();
        url.set_path(&self.name);
        url
    }

    /// A store in it.
    pub async fn connect(&self) -> Postgres {
        Postgres::connect(self.url().as_str()).await.expect("the test server answers")
    }

    /// A store in it, with its schema.
    pub async fn store(&self) -> Postgres {
        let store = self.connect().await;
        store.migrate().await.expect("an empty database can be migrated");
        let begin = format!(
            "insert into tidegate.epoch (id, system_identifier, started_at, ids_restarted)
            select '{EPOCH}', system_identifier, pg_postmaster_start_time(), false from pg_control_system()
            on conflict do nothing"
        );
        self.execute(&begin).await;
        store
    }

    /// A connection of one's own to it.
    #[allow(dead_code, reason = "not every test binary looks into the tables")]
    pub async fn client(&self) -> tokio_postgres::Client {
        client(&self.url()).await
    }

    /// Runs statements in it.
    #[allow(dead_code, reason = "not every test binary looks into the tables")]
    pub async fn execute(&self, sql: &str) {
        execute(&self.url(), sql).await;
    }

    /// The rows of a query, each column as text.
    #[allow(dead_code, reason = "not every test binary looks into the tables")]
    pub async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        use tokio_postgres::SimpleQueryMessage::Row;
        let client = client(&self.url()).await;
        let answer = client.simple_query(sql).await.expect("the query is sound");
        let text =
            |row: &tokio_postgres::SimpleQueryRow, i| row.get(i).unwrap_or("null").to_owned();
        let rows = answer.iter().filter_map(|message| match message {
            Row(row) => Some((0..row.len()).map(|i| text(row, i)).collect()),
            _ => None,
        });
        rows.collect()
    }
}

impl Drop for Database {
    /// A thread of its own, because a runtime cannot be entered from within another one.
    fn drop(&mut self) {
        let (server, sql) =
            (self.server.clone(), format!("drop database {} with (force)", self.name));
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(execute(&server, &sql));
        });
        if dropping.join().is_err() {
            eprintln!("database {} was left behind", self.name);
        }
    }
}

async fn execute(url: &Url, sql: &str) {
    client(url).await.batch_execute(sql).await.expect("the statement is sound");
}

async fn client(url: &Url) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(url.as_str(), NoTls).await.expect("the test server answers");
    tokio::spawn(connection);
    client
}
