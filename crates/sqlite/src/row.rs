//! Reading stored batches.

use rusqlite::{
    Row,
    types::{FromSqlError, Type},
};
use std::time::Duration;
use tidegate_core::{Batch, BatchId, RetryPolicy, SnapshotHash};

/// Reads the columns of a batch by their names.
pub(crate) fn batch(row: &Row<'_>) -> rusqlite::Result<Batch> {
    let duration = |name| row.get(name).map(Duration::from_millis);
    Ok(Batch {
        id: BatchId(row.get("id")?),
        workload: row.get("workload")?,
        snapshot: parsed(row, "snapshot", |bytes: Vec<u8>| SnapshotHash::from_slice(&bytes))?,
        seed: row.get::<_, i64>("seed")?.cast_unsigned(),
        runs: row.get("runs")?,
        keep: parsed(row, "keep", |text: String| text.parse().ok())?,
        retry: RetryPolicy {
            max_attempts: row.get("max_attempts")?,
            base: duration("backoff_ms")?,
            cap: duration("backoff_cap_ms")?,
        },
        timeout: row.get::<_, Option<u64>>("timeout_ms")?.map(Duration::from_millis),
    })
}

/// Reads a column whose content has a form of its own.
pub(crate) fn parsed<S: rusqlite::types::FromSql, T>(
    row: &Row<'_>,
    name: &str,
    parse: impl FnOnce(S) -> Option<T>,
) -> rusqlite::Result<T> {
    parse(row.get(name)?).ok_or_else(|| {
        let column = row.as_ref().column_index(name).unwrap_or_default();
        let error = FromSqlError::Other(format!("column `{name}` is damaged").into());
        rusqlite::Error::FromSqlConversionFailure(column, Type::Null, error.into())
    })
}
