//! Leases work, in one statement that returns all that is needed to act on it.

use crate::{
    decode::{batch, get, millis},
    error::corrupt,
    pool::{Call, Pool},
};
use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};
use tidegate_core::{
    BatchId, Fence, Items, Lease, Range, RetryItem, Snapshot, StoreError,
    claim::{Claim, ClaimRequest},
    limits::{DUE_WINDOW, MAX_LEASES_PER_CLAIM, MAX_RETRIES_PER_LEASE, MAX_RUNS},
    stamp,
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "claim";

pub(crate) async fn claim(pool: &Pool, request: &ClaimRequest) -> Result<Claim, StoreError> {
    let lengths = &request.lengths;
    let known: Vec<&[u8]> = request.known.iter().map(|hash| &hash.0[..]).collect();
    let ids: Vec<i64> = lengths.known.iter().map(|(batch, _)| batch.0).collect();
    let most: Vec<i64> = lengths.known.iter().map(|(_, length)| runs(length.most)).collect();
    let least: Vec<i64> = lengths.known.iter().map(|(_, length)| runs(length.least)).collect();
    let rows = pool
        .query(
            Call::under(OPERATION, request.lease),
            include_str!("sql/claim.sql"),
            &[
                (&request.worker.0, Type::TEXT),
                (&(request.slots.min(MAX_LEASES_PER_CLAIM) as i64), Type::INT8),
                (&request.workloads, Type::TEXT_ARRAY),
                (&request.only.map(|batch| batch.0), Type::INT8),
                (&millis(request.lease), Type::INT8),
                (&known, Type::BYTEA_ARRAY),
                (&runs(lengths.unknown.most), Type::INT8),
                (&runs(lengths.unknown.least), Type::INT8),
                (&ids, Type::INT8_ARRAY),
                (&most, Type::INT8_ARRAY),
                (&least, Type::INT8_ARRAY),
                (&(MAX_RETRIES_PER_LEASE as i64), Type::INT8),
                (&stamp::bits(RandomState::new().hash_one(())), Type::INT8),
                (&(DUE_WINDOW as i64), Type::INT8),
            ],
        )
        .await?;
    read(&rows)
}

/// No batch has more runs, so that cutting a length to it changes nothing but keeps sums in bounds.
fn runs(length: u64) -> i64 {
    length.min(MAX_RUNS) as i64
}

fn read(rows: &[Row]) -> Result<Claim, StoreError> {
    let first = rows.first().ok_or_else(|| corrupt(OPERATION, "the claim came back empty"))?;
    let settled: Option<Vec<i64>> = get(OPERATION, first, "settled")?;
    let next_due: Option<f64> = get(OPERATION, first, "next_due_seconds")?;
    let mut claim = Claim {
        settled: settled.unwrap_or_default().into_iter().map(BatchId).collect(),
        open: get::<i64>(OPERATION, first, "open")? as u64,
        next_due: next_due.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        ..Claim::default()
    };
    for row in rows {
        if get::<Option<i64>>(OPERATION, row, "id")?.is_some() {
            add_batch(&mut claim, row)?;
        }
    }
    // Fences are drawn in the order in which leases are to be returned.
    claim.leases.sort_by_key(|lease| lease.fence);
    Ok(claim)
}

fn add_batch(claim: &mut Claim, row: &Row) -> Result<(), StoreError> {
    let batch = batch(OPERATION, row)?;
    if let Some(body) = get(OPERATION, row, "snapshot_body")? {
        claim.snapshots.push(Snapshot::from_canonical(body));
    }
    claim.leases.extend(leases(batch.id, row)?);
    claim.batches.push(batch);
    Ok(())
}

/// The five arrays have one entry per range or retry; the retries of one lease follow each other.
fn leases(batch: BatchId, row: &Row) -> Result<Vec<Lease>, StoreError> {
    let fences: Vec<i64> = get(OPERATION, row, "fences")?;
    let los: Vec<i64> = get(OPERATION, row, "los")?;
    let his: Vec<i64> = get(OPERATION, row, "his")?;
    let attempts: Vec<Option<i32>> = get(OPERATION, row, "attempts")?;
    let suspects: Vec<bool> = get(OPERATION, row, "suspects")?;
    let mut leases: Vec<Lease> = Vec::new();
    let rows = fences.into_iter().zip(los).zip(his).zip(attempts).zip(suspects);
    for ((((fence, lo), hi), attempts), suspect) in rows {
        let fence = Fence(fence);
        let Some(attempts) = attempts else {
            let items = Items::Range(Range::new(lo as u64, hi as u64));
            leases.push(Lease { batch, fence, items, suspect });
            continue;
        };
        let retry = RetryItem { index: lo as u64, attempts: attempts as u32 };
        match leases.last_mut() {
            Some(Lease { fence: last, items: Items::Retries(items), .. }) if *last == fence => {
                items.push(retry);
            }
            _ => {
                let items = Items::Retries(vec![retry]);
                leases.push(Lease { batch, fence, items, suspect });
            }
        }
    }
    Ok(leases)
}
