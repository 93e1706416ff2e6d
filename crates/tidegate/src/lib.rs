//! Tidegate moves durable work in batches, from the database where it is recorded to the code that
//! must act on it, and loses none of it.
//!
//! A batch of N runs is one row. A worker leases a range of indexes, acts on it with all its
//! threads, and settles results, failures and aggregates in one transaction. Implement
//! [`Workload`], submit a batch with [`submit`], and let a [`Worker`] carry it out:
//!
//! ```
//! use tidegate::*;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = open("memory:", Access::Create).await?;
//! let workloads = workloads::builtin();
//! let batch = submit(&*store, &workloads, BatchSpec::new("noop", 10_000)).await?;
//!
//! let options = WorkerOptions { until: Until::Idle, ..WorkerOptions::new(worker_id()) };
//! Worker::new(store.source(), workloads, options).run(Stop::new()).await?;
//! assert_eq!(store.aggregates(batch.id).await?.runs, 10_000);
//! # Ok(())
//! # }
//! ```

pub mod archive;
pub mod load;
mod open;
mod open_outbox;
mod spec;

pub use open::{Access, OpenStore, open, ready, script, sqlite_file};
pub use open_outbox::{
    Cost, OpenOutbox, check_dynamodb, is_dynamodb, open_outbox, script_of_missing,
};
pub use spec::{BatchSpec, SubmitError, submit};

pub use tidegate_core::*;
#[cfg(feature = "dynamodb")]
pub use tidegate_dynamodb as dynamodb;
pub use tidegate_engine::relay;
pub use tidegate_engine::{
    Limit, PhaseReport, Report, Stop, UnfitLease, Until, Worker, WorkerError, WorkerOptions,
};
pub use tidegate_pacer as pacer;
pub use tidegate_postgres::{
    Protection, adopted, client as postgres_client, files as postgres_files,
    is_address as is_postgres, role as postgres_role, with_database, without_password,
};
pub use tidegate_records as records;
pub use tidegate_sinks as sinks;
pub use tidegate_workloads as workloads;

/// Publishing in the caller's own transaction: messages are there if and when it commits.
pub mod publish {
    pub use tidegate_postgres::publish as postgres;
    pub use tidegate_sqlite::publish as sqlite;
}

/// A name for a worker that no other process has.
pub fn worker_id() -> WorkerId {
    use std::hash::{BuildHasher, RandomState};
    let noise = RandomState::new().hash_one(std::process::id());
    WorkerId(format!("{}-{noise:016x}", std::process::id()))
}

/// Compiles the README's Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the Rust of the page about DynamoDB.
#[cfg(all(doctest, feature = "dynamodb"))]
#[doc = include_str!("../../../docs/dynamodb.md")]
struct DynamoDbPage;
