//! Closing batches that have nothing outstanding, exactly once.

use crate::{
    errors::{Failure, corrupt},
    sql::Sql,
};
use rusqlite::params;
use tidegate_core::{Aggregates, BatchId, BatchState, source::Finalized};

/// Closes one batch, unless something of it is outstanding or it is closed already. The workers'
/// parts stay: they recognize a settlement that is sent again, and a worker that goes on after a
/// retry overwrites its own.
pub(crate) fn finalize(sql: &Sql, batch: BatchId) -> Result<Option<Finalized>, Failure> {
    let dead = sql.row(include_str!("sql/finalize_dead.sql"), [batch.0], |row| row.get(0))?;
    let state = match dead {
        None => return Ok(None),
        Some(0u64) => BatchState::Completed,
        Some(_) => BatchState::CompletedWithFailures,
    };
    let aggregates = aggregates(sql, batch, "finalize")?;
    close(sql, batch, state, &aggregates)?;
    Ok(Some(Finalized { batch, state }))
}

fn close(
    sql: &Sql,
    batch: BatchId,
    state: BatchState,
    aggregates: &Aggregates,
) -> Result<(), Failure> {
    let summary = serde_json::to_string(&aggregates.summary())
        .expect("a summary has only text keys, which JSON can hold");
    let digest = aggregates.digest.to_string();
    let params = params![batch.0, state.as_str(), sql.now()?.0, digest, summary];
    sql.execute(include_str!("sql/finalize_batch.sql"), params)?;
    Ok(())
}

/// The sum of what all workers have settled of a batch.
pub(crate) fn aggregates(
    sql: &Sql,
    batch: BatchId,
    operation: &'static str,
) -> Result<Aggregates, Failure> {
    let parts: Vec<Vec<u8>> =
        sql.rows(include_str!("sql/inspect_parts.sql"), [batch.0], |row| row.get(0))?;
    let mut sum = Aggregates::default();
    for part in parts {
        let part = Aggregates::decode(&part);
        let what = || format!("a part of the aggregates of batch {batch}");
        sum.merge(&part.ok_or_else(|| corrupt(operation, what()))?);
    }
    Ok(sum)
}
