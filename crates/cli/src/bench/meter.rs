//! What a stretch of work costs the server, in the server's own words.

use serde::Serialize;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

/// Measures time; on PostgreSQL also the write-ahead log and the transactions that wrote.
pub enum Meter {
    Clock,
    Server { client: Box<Client>, url: String, server: Server },
}

/// The settings that decide what a commit means.
#[derive(Clone, Debug, Serialize)]
pub struct Server {
    pub version: String,
    pub fsync: String,
    pub synchronous_commit: String,
    pub full_page_writes: String,
    /// Whether each mode begins right after a checkpoint. Only then do all of them pay alike for
    /// the full images of pages that the log holds after one.
    pub checkpoints: bool,
}

impl Server {
    /// Whether a commit survives a power failure.
    pub fn durable(&self) -> bool {
        self.fsync == "on" && !["off", "local"].contains(&self.synchronous_commit.as_str())
    }
}

/// Where a stretch began.
pub struct Start {
    at: Instant,
    position: Option<Position>,
}

struct Position {
    wal: i64,
    transaction: i64,
}

/// What a stretch took.
pub struct Cost {
    pub time: Duration,
    pub wal_bytes: Option<u64>,
    /// Transactions that wrote something.
    pub transactions: Option<u64>,
}

/// Both numbers count from the server's first day; reading the second takes one transaction.
const POSITION: &str = "select (pg_current_wal_insert_lsn() - '0/0')::bigint, \
                        pg_current_xact_id()::text::bigint";

impl Meter {
    pub async fn open(url: &str) -> anyhow::Result<Self> {
        if !tidegate::is_postgres(url) {
            return Ok(Meter::Clock);
        }
        let client = connect(url).await?;
        let server = Server {
            version: setting(&client, "server_version").await?,
            fsync: setting(&client, "fsync").await?,
            synchronous_commit: setting(&client, "synchronous_commit").await?,
            full_page_writes: setting(&client, "full_page_writes").await?,
            checkpoints: client.batch_execute("checkpoint").await.is_ok(),
        };
        Ok(Meter::Server { client: Box::new(client), url: url.to_owned(), server })
    }

    /// The server, if the store has one.
    pub fn server(&self) -> Option<&Server> {
        match self {
            Meter::Clock => None,
            Meter::Server { server, .. } => Some(server),
        }
    }

    /// Begins a stretch, after a checkpoint if the server allows it.
    pub async fn start(&self) -> anyhow::Result<Start> {
        let position = match self {
            Meter::Clock => None,
            Meter::Server { client, server, .. } => {
                if server.checkpoints {
                    client.batch_execute("checkpoint").await?;
                }
                Some(position(client).await?)
            }
        };
        Ok(Start { at: Instant::now(), position })
    }

    /// Ends a stretch.
    pub async fn stop(&self, start: Start) -> anyhow::Result<Cost> {
        let time = start.at.elapsed();
        let (Meter::Server { client, .. }, Some(before)) = (self, start.position) else {
            return Ok(Cost { time, wal_bytes: None, transactions: None });
        };
        let after = position(client).await?;
        Ok(Cost {
            time,
            wal_bytes: Some((after.wal - before.wal) as u64),
            transactions: Some((after.transaction - before.transaction - 1) as u64),
        })
    }
}

/// A connection of the bench's own, encrypted as the store's are.
pub async fn connect(url: &str) -> anyhow::Result<Client> {
    Ok(tidegate::postgres_client(url).await?)
}

async fn setting(client: &Client, name: &str) -> anyhow::Result<String> {
    let row = client.query_one("select current_setting($1)", &[&name]).await?;
    Ok(row.get(0))
}

async fn position(client: &Client) -> anyhow::Result<Position> {
    let row = client.query_one(POSITION, &[]).await?;
    Ok(Position { wal: row.get(0), transaction: row.get(1) })
}
