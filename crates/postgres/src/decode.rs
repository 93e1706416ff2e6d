//! Between rows and the words of the core.

use crate::error::corrupt;
use std::time::Duration;
use tidegate_core::{
    Aggregates, Batch, BatchId, BatchState, RetryPolicy, SnapshotHash, StoreError,
    outbox::StuckState,
};
use tokio_postgres::{Row, types::FromSql};

/// Longer times are cut to this one, about 136 years: intervals have an end.
const LONGEST_MS: u128 = u32::MAX as u128 * 1_000;

/// A duration as PostgreSQL gets it: whole milliseconds, rounded up.
pub(crate) fn millis(duration: Duration) -> i64 {
    duration.as_nanos().div_ceil(1_000_000).min(LONGEST_MS) as i64
}

/// One column of a row.
pub(crate) fn get<'a, T: FromSql<'a>>(
    operation: &'static str,
    row: &'a Row,
    column: &str,
) -> Result<T, StoreError> {
    let unreadable = |error| corrupt(operation, format!("`{column}` is unreadable: {error}"));
    row.try_get(column).map_err(unreadable)
}

/// The state of a message that was set aside.
pub(crate) fn stuck_state(operation: &'static str, row: &Row) -> Result<StuckState, StoreError> {
    let word: &str = get(operation, row, "state")?;
    StuckState::parse(word).ok_or_else(|| corrupt(operation, format!("`{word}` is no state")))
}

/// The batch in a row that has all its columns.
pub(crate) fn batch(operation: &'static str, row: &Row) -> Result<Batch, StoreError> {
    let number = |column| get::<i64>(operation, row, column);
    let id = BatchId(number("id")?);
    let damaged = |what: &str| corrupt(operation, format!("the {what} of batch {id} is damaged"));
    let hash: &[u8] = get(operation, row, "snapshot")?;
    let keep: &str = get(operation, row, "keep")?;
    let timeout: Option<i64> = get(operation, row, "timeout_ms")?;
    Ok(Batch {
        id,
        workload: get(operation, row, "workload")?,
        snapshot: SnapshotHash::from_slice(hash).ok_or_else(|| damaged("snapshot's hash"))?,
        seed: number("seed")? as u64,
        runs: number("runs")? as u64,
        keep: keep.parse().map_err(|_| damaged("choice of results"))?,
        retry: RetryPolicy {
            max_attempts: get::<i32>(operation, row, "max_attempts")? as u32,
            base: Duration::from_millis(number("backoff_ms")? as u64),
            cap: Duration::from_millis(number("backoff_cap_ms")? as u64),
        },
        timeout: timeout.map(|ms| Duration::from_millis(ms as u64)),
    })
}

/// The state of a batch.
pub(crate) fn state(operation: &'static str, row: &Row) -> Result<BatchState, StoreError> {
    let word: &str = get(operation, row, "state")?;
    BatchState::parse(word)
        .ok_or_else(|| corrupt(operation, format!("`{word}` is no state of a batch")))
}

/// One part of a batch's aggregates.
pub(crate) fn part(
    operation: &'static str,
    batch: BatchId,
    body: &[u8],
) -> Result<Aggregates, StoreError> {
    Aggregates::decode(body)
        .ok_or_else(|| corrupt(operation, format!("the aggregates of batch {batch} are damaged")))
}
