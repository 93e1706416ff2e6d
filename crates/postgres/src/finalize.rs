//! Closes batches that have nothing outstanding, exactly once.

use crate::{
    decode::{get, part, state},
    pool::Pool,
};
use std::collections::BTreeMap;
use tidegate_core::{Aggregates, BatchId, StoreError, Summary, source::Finalized};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "finalize";

/// Reads the parts, adds them up, and closes the batches if they are still as they were read. One
/// whose parts are damaged keeps no other from being closed: its error comes when no other is left.
pub(crate) async fn finalize(
    pool: &Pool,
    batches: &[BatchId],
) -> Result<Vec<Finalized>, StoreError> {
    let ids: Vec<i64> = batches.iter().map(|batch| batch.0).collect();
    let sql = include_str!("sql/finalize_read.sql");
    let rows = pool.query(OPERATION, sql, &[(&ids, Type::INT8_ARRAY)]).await?;
    let (sums, damage) = add_up(&rows)?;
    let closed = if sums.is_empty() { Vec::new() } else { close(pool, &sums).await? };
    match damage {
        Some(error) if closed.is_empty() => Err(error),
        _ => Ok(closed),
    }
}

/// What is known of a batch with nothing outstanding.
struct Sum {
    reopened: i64,
    aggregates: Aggregates,
    /// Which parts were added up, and after which settlements.
    parts: Vec<String>,
}

type Sums = BTreeMap<BatchId, Sum>;

fn add_up(rows: &[Row]) -> Result<(Sums, Option<StoreError>), StoreError> {
    let mut sums = Sums::new();
    let mut damaged = BTreeMap::new();
    for row in rows {
        let batch = BatchId(get(OPERATION, row, "id")?);
        let reopened = get(OPERATION, row, "reopened")?;
        let body: Option<&[u8]> = get(OPERATION, row, "body")?;
        let sum = sums.entry(batch).or_insert_with(|| Sum {
            reopened,
            aggregates: Default::default(),
            parts: Vec::new(),
        });
        if body.is_some() {
            let accumulator: i64 = get(OPERATION, row, "accumulator")?;
            let sequence: i64 = get(OPERATION, row, "sequence")?;
            sum.parts.push(format!("{accumulator}:{sequence}"));
        }
        match body.map(|body| part(OPERATION, batch, body)) {
            Some(Ok(part)) => sum.aggregates.merge(&part),
            Some(Err(error)) => drop(damaged.insert(batch, error)),
            None => {}
        }
    }
    sums.retain(|batch, _| !damaged.contains_key(batch));
    Ok((sums, damaged.into_values().next()))
}

async fn close(pool: &Pool, sums: &Sums) -> Result<Vec<Finalized>, StoreError> {
    let ids: Vec<i64> = sums.keys().map(|batch| batch.0).collect();
    let reopened: Vec<i64> = sums.values().map(|sum| sum.reopened).collect();
    let digests: Vec<String> = sums.values().map(|s| s.aggregates.digest.to_string()).collect();
    let summaries: Vec<String> = sums.values().map(|sum| json(sum.aggregates.summary())).collect();
    let parts: Vec<String> = sums.values().map(|sum| sum.parts.join(" ")).collect();
    let params = [
        (&ids as _, Type::INT8_ARRAY),
        (&reopened as _, Type::INT8_ARRAY),
        (&digests as _, Type::TEXT_ARRAY),
        (&summaries as _, Type::TEXT_ARRAY),
        (&parts as _, Type::TEXT_ARRAY),
    ];
    let rows = pool.query(OPERATION, include_str!("sql/finalize.sql"), &params).await?;
    let mut closed = rows.iter().map(finalized).collect::<Result<Vec<_>, _>>()?;
    closed.sort_by_key(|finalized| finalized.batch);
    Ok(closed)
}

fn json(summary: Summary) -> String {
    serde_json::to_string(&summary).expect("names are text and numbers are numbers")
}

fn finalized(row: &Row) -> Result<Finalized, StoreError> {
    let batch = BatchId(get(OPERATION, row, "id")?);
    Ok(Finalized { batch, state: state(OPERATION, row)? })
}
