//! Reading for people.

use crate::{
    Postgres,
    decode::{batch, get, part, state},
    error::corrupt,
};
use async_trait::async_trait;
use tidegate_core::{
    Aggregates, BatchId, BatchState, Exception, ExceptionState, Inspect, Page, Range, Snapshot,
    SnapshotHash, StoreError,
    inspect::{BatchQuery, BatchStatus, ExceptionQuery, PageQuery, Progress},
    limits::MAX_LISTED,
};
use tokio_postgres::{Row, types::Type};

#[async_trait]
impl Inspect for Postgres {
    async fn batches(&self, query: BatchQuery) -> Result<Vec<BatchStatus>, StoreError> {
        let params = [
            (&query.id.map(|id| id.0) as _, Type::INT8),
            (&query.state.map(BatchState::as_str) as _, Type::TEXT),
            (&query.before.map(|id| id.0) as _, Type::INT8),
            (&limit(query.limit) as _, Type::INT8),
        ];
        let sql = include_str!("sql/batches.sql");
        let rows = self.pool.query("read batches", sql, &params).await?;
        rows.iter().map(status).collect()
    }

    async fn aggregates(&self, batch: BatchId) -> Result<Aggregates, StoreError> {
        const OPERATION: &str = "read aggregates";
        let sql = include_str!("sql/aggregates.sql");
        let rows = self.pool.query(OPERATION, sql, &[(&batch.0, Type::INT8)]).await?;
        let mut aggregates = Aggregates::default();
        for row in &rows {
            aggregates.merge(&part(OPERATION, batch, get(OPERATION, row, "body")?)?);
        }
        Ok(aggregates)
    }

    async fn exceptions(&self, query: ExceptionQuery) -> Result<Vec<Exception>, StoreError> {
        let params = [
            (&query.batch.0 as _, Type::INT8),
            (&query.state.map(ExceptionState::as_str) as _, Type::TEXT),
            (&index(query.from) as _, Type::INT8),
            (&limit(query.limit) as _, Type::INT8),
        ];
        let sql = include_str!("sql/exceptions.sql");
        let rows = self.pool.query("read exceptions", sql, &params).await?;
        rows.iter().map(|row| exception(query.batch, row)).collect()
    }

    async fn pages(&self, query: PageQuery) -> Result<Vec<Page>, StoreError> {
        let params = [
            (&query.batch.0 as _, Type::INT8),
            (&index(query.from) as _, Type::INT8),
            (&index(query.beyond) as _, Type::INT8),
            (&limit(query.limit) as _, Type::INT8),
        ];
        let rows = self.pool.query("read pages", include_str!("sql/pages.sql"), &params).await?;
        rows.iter().map(page).collect()
    }

    async fn snapshot(&self, hash: SnapshotHash) -> Result<Option<Snapshot>, StoreError> {
        const OPERATION: &str = "read snapshot";
        let sql = include_str!("sql/snapshot.sql");
        let rows = self.pool.query(OPERATION, sql, &[(&&hash.0[..], Type::BYTEA)]).await?;
        let body = rows.first().map(|row| get(OPERATION, row, "body")).transpose()?;
        Ok(body.map(Snapshot::from_canonical))
    }
}

fn limit(limit: usize) -> i64 {
    limit.min(MAX_LISTED) as i64
}

/// No stored index is above the largest signed number.
fn index(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

fn status(row: &Row) -> Result<BatchStatus, StoreError> {
    const OPERATION: &str = "read batches";
    let number = |column| get::<i64>(OPERATION, row, column).map(|number| number as u64);
    let batch = batch(OPERATION, row)?;
    let progress = Progress::derive(
        batch.runs,
        number("cursor")?,
        number("leased")?,
        number("ended")?,
        number("retrying")?,
        number("dead")?,
    );
    Ok(BatchStatus {
        batch,
        progress,
        state: state(OPERATION, row)?,
        created_ms: get(OPERATION, row, "created_ms")?,
        finished_ms: get(OPERATION, row, "finished_ms")?,
    })
}

fn exception(batch: BatchId, row: &Row) -> Result<Exception, StoreError> {
    const OPERATION: &str = "read exceptions";
    let word: &str = get(OPERATION, row, "state")?;
    Ok(Exception {
        batch,
        index: get::<i64>(OPERATION, row, "index")? as u64,
        attempts: get::<i32>(OPERATION, row, "attempts")? as u32,
        state: ExceptionState::parse(word)
            .ok_or_else(|| corrupt(OPERATION, format!("`{word}` is no state of an exception")))?,
        reason: get(OPERATION, row, "reason")?,
    })
}

fn page(row: &Row) -> Result<Page, StoreError> {
    const OPERATION: &str = "read pages";
    let number = |column| get::<i64>(OPERATION, row, column).map(|number| number as u64);
    let indexes: Option<Vec<i64>> = get(OPERATION, row, "indexes")?;
    Ok(Page {
        range: Range::new(number("lo")?, number("hi")?),
        indexes: indexes.map(|indexes| indexes.into_iter().map(|index| index as u64).collect()),
        results: get(OPERATION, row, "results")?,
    })
}
