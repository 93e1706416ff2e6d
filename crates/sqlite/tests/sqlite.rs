//! What only the SQLite store promises: which files it takes, how it shares one, what it costs.

#![allow(clippy::unwrap_used, reason = "everything here is a test or serves one")]

#[path = "sqlite/cost.rs"]
mod cost;
#[path = "sqlite/files.rs"]
mod files;
#[path = "sqlite/names.rs"]
mod names;
#[path = "sqlite/outbox.rs"]
mod outbox;
#[path = "sqlite/publish.rs"]
mod publish;
#[path = "sqlite/restored.rs"]
mod restored;
#[path = "sqlite/schema.rs"]
mod schema;
#[path = "sqlite/sharing.rs"]
mod sharing;

use std::{path::PathBuf, time::Duration};
use tempfile::TempDir;
use tidegate_core::{
    Aggregates, Batch, BatchId, Items, Keep, Lease, Migrate, Page, RetryPolicy, Snapshot, Source,
    Submit, WorkerId,
    claim::{Claim, ClaimRequest, Length, Lengths},
    settle::{AccumulatorId, Part, Progress, Settlement, Total},
    submit::NewBatch,
};
use tidegate_sqlite::{Open, Sqlite};

const HOUR: Duration = Duration::from_secs(3600);

/// A directory that goes away with the test, and the path of a store in it.
fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tidegate.db");
    (directory, path)
}

async fn store() -> (TempDir, PathBuf, Sqlite) {
    let (directory, path) = place();
    let store = Sqlite::open(&path, Open::Create).unwrap();
    store.migrate().await.unwrap();
    (directory, path, store)
}

async fn submit(store: &Sqlite, runs: u64) -> Batch {
    let batch = NewBatch {
        workload: "noop".to_owned(),
        snapshot: Snapshot::freeze(&serde_json::json!({"a": 1})),
        seed: u64::MAX,
        runs,
        keep: Keep::All,
        retry: RetryPolicy::default(),
        timeout: None,
    };
    store.submit(batch).await.unwrap()
}

async fn claim(store: &Sqlite, slots: usize, most: u64) -> Claim {
    let request = ClaimRequest {
        worker: WorkerId("test".to_owned()),
        slots,
        lengths: Lengths { unknown: Length { most, least: 1 }, known: Vec::new() },
        workloads: vec!["noop".to_owned()],
        only: None,
        lease: HOUR,
        known: Vec::new(),
    };
    store.claim(request).await.unwrap()
}

/// Settles all of a lease.
fn settlement(lease: &Lease, page: Option<Page>, sequence: i64) -> Settlement {
    let progress = Progress::of(&lease.items, 0, lease.items.len());
    Settlement {
        parts: vec![Part {
            batch: lease.batch,
            fence: lease.fence,
            progress,
            page,
            failed: Vec::new(),
        }],
        totals: vec![total(lease.batch, sequence)],
        lease: HOUR,
    }
}

fn total(batch: BatchId, sequence: i64) -> Total {
    let body = Aggregates::default().encode();
    Total { batch, accumulator: AccumulatorId(7), before: sequence - 1, sequence, body }
}

/// One page with the result `0` for each run of a range lease.
fn dense(lease: &Lease) -> Option<Page> {
    let Items::Range(range) = lease.items else { panic!("{lease:?}") };
    let results = format!("[{}]", vec!["0"; range.len() as usize].join(","));
    Some(Page { range, indexes: None, results })
}
