//! The embedded store: SQLite.
//!
//! One connection writes, on a thread of its own, in `BEGIN IMMEDIATE` transactions; another one
//! reads. Both processes and threads share the file: the write lock orders their transactions, and
//! the commit of each is durable (`synchronous=FULL`). What a transaction does is one file per step
//! of the engine's loop; what each statement does is in `sql/`.

mod claim;
mod connect;
mod errors;
mod finalize;
mod inspect;
mod migrate;
mod outbox;
mod pace;
mod place;
mod renew;
mod row;
mod settle;
mod sql;
mod submit;
mod thread;

pub use migrate::script;
pub use outbox::publish;
pub use rusqlite;

use async_trait::async_trait;
use errors::Failure;
use rusqlite::TransactionBehavior;
use sql::{Counters, Sql};
use std::{
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use thread::Thread;
use tidegate_core::{
    BatchId, Fence, Lease, Source, StoreError,
    claim::{Claim, ClaimRequest},
    settle::{Settled, Settlement},
    source::{Capabilities, Finalized, Renewal},
};
use tokio::sync::Notify;

const SNAPSHOT: &str = include_str!("sql/snapshot.sql");

/// Whether a missing file may be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// A missing file is created, empty; [`Migrate`](tidegate_core::Migrate) makes a store of it.
    Create,
    /// The file must be there.
    Existing,
}

/// A store in a file. Clones share its two connections; the last one closes them.
#[derive(Clone)]
pub struct Sqlite(Arc<Inner>);

/// The reader is closed first: only a connection that may write can clear the log away.
struct Inner {
    reader: Thread,
    writer: Thread,
    counters: Arc<Counters>,
    work: Notify,
    messages: Notify,
}

impl Sqlite {
    /// Opens the store at `path`. What is there and is no store of ours is refused and not changed.
    pub fn open(path: &Path, open: Open) -> Result<Self, StoreError> {
        let connections = connect::connect(path, open)?;
        Ok(Self(Arc::new(Inner {
            reader: Thread::start("tidegate-reader", connections.reader)?,
            writer: Thread::start("tidegate-writer", connections.writer)?,
            counters: Arc::default(),
            work: Notify::new(),
            messages: Notify::new(),
        })))
    }

    /// How many statements this store has executed, without the begin and the end of transactions.
    pub fn statements(&self) -> u64 {
        self.0.counters.statements.load(Relaxed)
    }

    /// How many write transactions this store has begun.
    pub fn transactions(&self) -> u64 {
        self.0.counters.transactions.load(Relaxed)
    }

    fn reader(&self) -> &Thread {
        &self.0.reader
    }

    fn writer(&self) -> &Thread {
        &self.0.writer
    }

    /// Reads what is committed.
    async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Sql) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let counters = self.0.counters.clone();
        self.reader()
            .call(operation, move |connection| work(&Sql::new(connection, &counters)))
            .await
    }

    /// Carries out `work` in one transaction, which is rolled back if it fails.
    async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Sql) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write_if(operation, |_| true, work).await
    }

    /// Like [`Sqlite::write`], and rolled back as well if `keep` says no to the answer.
    async fn write_if<T: Send + 'static>(
        &self,
        operation: &'static str,
        keep: impl FnOnce(&T) -> bool + Send + 'static,
        work: impl FnOnce(&Sql) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let counters = self.0.counters.clone();
        let transact = move |connection: &mut rusqlite::Connection| {
            counters.transactions.fetch_add(1, Relaxed);
            let behavior = TransactionBehavior::Immediate;
            let transaction = connection.transaction_with_behavior(behavior)?;
            let answer = work(&Sql::new(&transaction, &counters))?;
            match keep(&answer) {
                true => transaction.commit()?,
                false => transaction.rollback()?,
            }
            Ok(answer)
        };
        self.writer().call(operation, transact).await
    }

    /// Tells whoever waits in this process, or the next who does, that there may be work.
    fn hint(&self) {
        tell(&self.0.work);
    }

    /// The same for messages: workers and relays wait apart, so that neither takes the other's hint.
    fn hint_messages(&self) {
        tell(&self.0.messages);
    }
}

fn tell(hint: &Notify) {
    hint.notify_waiters();
    hint.notify_one();
}

#[async_trait]
impl Source for Sqlite {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "sqlite", durable: true, shared: true }
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        self.write("claim", move |sql| claim::claim(sql, &request)).await
    }

    async fn renew(&self, request: Renewal) -> Result<Vec<Fence>, StoreError> {
        self.write("renew", move |sql| renew::renew(sql, &request)).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        let applied = |settled: &Settled| *settled == Settled::Applied;
        self.write_if("settle", applied, move |sql| settle::settle(sql, &settlement)).await
    }

    async fn give_back(&self, leases: Vec<Lease>) -> Result<(), StoreError> {
        self.write("give back", move |sql| renew::give_back(sql, &leases)).await?;
        self.hint();
        Ok(())
    }

    /// One transaction per batch: a damaged batch keeps no other from being closed.
    async fn finalize(&self, batches: Vec<BatchId>) -> Result<Vec<Finalized>, StoreError> {
        let mut finalized = Vec::new();
        let mut failed = None;
        for batch in batches {
            match self.write("finalize", move |sql| finalize::finalize(sql, batch)).await {
                Ok(closed) => finalized.extend(closed),
                Err(error) => failed = Some(error),
            }
            if failed.as_ref().is_some_and(StoreError::is_passing) {
                break;
            }
        }
        match failed {
            // What was closed must be said now or never; the failed one is offered again.
            Some(error) if finalized.is_empty() => Err(error),
            _ => Ok(finalized),
        }
    }

    async fn wake(&self) {
        self.0.work.notified().await;
    }
}
