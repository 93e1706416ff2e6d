//! Publishing as an application does it: in a transaction of its own, which may take long and may be rolled back.

use anyhow::{Context, Result};
use rusqlite::{Connection, TransactionBehavior};
use std::{path::PathBuf, time::Duration};
use tidegate::{NewMessage, publish, sqlite_file};
use tidegate_drill::history::{Fate, Moment};
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

/// No statement of a publisher takes longer, unless the server is gone.
const DEADLINE: Duration = Duration::from_secs(10);

/// A transaction that publishes.
pub struct Transaction {
    pub messages: Vec<NewMessage>,
    /// How long it stays open after the messages are written.
    pub open: Duration,
    pub commits: bool,
}

/// A connection that publishes.
pub enum Publisher {
    Postgres { url: String, client: Option<Client> },
    Sqlite { path: PathBuf },
}

impl Publisher {
    pub fn new(url: &str) -> Self {
        match sqlite_file(url) {
            Some(path) => Self::Sqlite { path: path.into() },
            None => Self::Postgres { url: url.to_owned(), client: None },
        }
    }

    /// Returns what became of the messages, and an error if the connection was lost: then the next call connects anew.
    pub async fn publish(
        &mut self,
        transaction: Transaction,
        now: impl Fn() -> Moment + Send + 'static,
    ) -> (Fate, Result<()>) {
        match self {
            Self::Postgres { url, client } => {
                let (fate, result) = on_postgres(url, client, transaction, now).await;
                if result.is_err() {
                    *client = None;
                }
                (fate, result)
            }
            Self::Sqlite { path } => {
                let path = path.clone();
                let published =
                    tokio::task::spawn_blocking(move || on_sqlite(&path, &transaction, now)).await;
                match published {
                    Ok(Ok(fate)) => (fate, Ok(())),
                    // Nothing was committed: SQLite says so when something was.
                    Ok(Err(error)) => (Fate::RolledBack, Err(error)),
                    Err(error) => (Fate::Unknown, Err(error.into())),
                }
            }
        }
    }
}

async fn on_postgres(
    url: &str,
    client: &mut Option<Client>,
    transaction: Transaction,
    now: impl Fn() -> Moment,
) -> (Fate, Result<()>) {
    let client = match connected(url, client).await {
        Ok(client) => client,
        Err(error) => return (Fate::RolledBack, Err(error)),
    };
    let written = async {
        client.batch_execute("begin").await?;
        publish::postgres(client, &transaction.messages).await?;
        sleep(transaction.open).await;
        if !transaction.commits {
            client.batch_execute("rollback").await?;
        }
        anyhow::Ok(())
    };
    match timeout(DEADLINE + transaction.open, written).await {
        Ok(Ok(())) if !transaction.commits => return (Fate::RolledBack, Ok(())),
        Ok(Ok(())) => {}
        Ok(Err(error)) => return (Fate::RolledBack, Err(error)),
        // The connection is closed, and the transaction with it.
        Err(error) => return (Fate::RolledBack, Err(error.into())),
    }
    match timeout(DEADLINE, client.batch_execute("commit")).await {
        Ok(Ok(())) => (Fate::Committed(now()), Ok(())),
        Ok(Err(error)) => (Fate::Unknown, Err(error.into())),
        Err(error) => (Fate::Unknown, Err(error.into())),
    }
}

async fn connected<'a>(url: &str, client: &'a mut Option<Client>) -> Result<&'a Client> {
    if client.is_none() {
        let connected = timeout(DEADLINE, tidegate::postgres_client(url)).await??;
        *client = Some(connected);
    }
    client.as_ref().context("there is no connection")
}

fn on_sqlite(path: &PathBuf, transaction: &Transaction, now: impl Fn() -> Moment) -> Result<Fate> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(DEADLINE)?;
    let open = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    publish::sqlite(&open, &transaction.messages)?;
    if !transaction.commits {
        open.rollback()?;
        return Ok(Fate::RolledBack);
    }
    open.commit()?;
    Ok(Fate::Committed(now()))
}
