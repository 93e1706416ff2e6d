//! New batches, and what people do to them.

use crate::{
    Postgres,
    decode::{get, millis, state},
    error::corrupt,
    pool::Params,
};
use async_trait::async_trait;
use tidegate_core::{
    Batch, BatchId, BatchState, Class, Fence, Kind, StoreError, Submit,
    limits::{MAX_RETRIED, STORE_DEADLINE},
    submit::{NewBatch, Once, Retried},
};
use tokio_postgres::{
    IsolationLevel, Row, Transaction,
    types::{ToSql, Type},
};

const SUBMIT: &str = include_str!("sql/submit.sql");

#[async_trait]
impl Submit for Postgres {
    async fn submit(&self, batch: NewBatch) -> Result<Batch, StoreError> {
        batch.check()?;
        let columns = Columns::of(&batch);
        let rows = self.pool.query("submit", SUBMIT, &columns.params()).await?;
        let row = rows.first().ok_or_else(|| corrupt("submit", "the new batch has no number"))?;
        Ok(batch.into_batch(BatchId(get("submit", row, "id")?)))
    }

    async fn submit_once(&self, batch: NewBatch, again: bool) -> Result<Once, StoreError> {
        batch.check()?;
        let (row, found) = self
            .pool
            .with_connection("submit", STORE_DEADLINE, async |client| {
                let transaction = client.build_transaction();
                // Only so does a statement see what others have stored before it.
                let transaction = transaction.isolation_level(IsolationLevel::ReadCommitted);
                let transaction = transaction.start().await?;
                let stored = found_or_new(&transaction, &batch, again).await?;
                transaction.commit().await?;
                Ok(stored)
            })
            .await?;
        Ok(Once { id: BatchId(get("submit", &row, "id")?), found })
    }

    async fn cancel(&self, batch: BatchId) -> Result<(), StoreError> {
        let params = [(&batch.0 as _, Type::INT8), (&Fence::NOBODY.0 as _, Type::INT8)];
        let rows = self.pool.query("cancel", include_str!("sql/cancel.sql"), &params).await?;
        let row = rows.first().ok_or_else(|| missing("cancel", batch))?;
        match state("cancel", row)? {
            BatchState::Running => Ok(()),
            other => {
                Err(refused("cancel", format!("batch {batch} is {}, not running", other.as_str())))
            }
        }
    }

    async fn retry(&self, batch: BatchId, from: u64) -> Result<Retried, StoreError> {
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let params = [
            (&batch.0 as _, Type::INT8),
            (&from as _, Type::INT8),
            (&(MAX_RETRIED as i64) as _, Type::INT8),
        ];
        let rows = self.pool.query("retry", include_str!("sql/retry.sql"), &params).await?;
        let row = rows.first().ok_or_else(|| missing("retry", batch))?;
        if state("retry", row)? == BatchState::Cancelled {
            let message = format!("batch {batch} was cancelled; submit it again instead");
            return Err(refused("retry", message));
        }
        let next: Option<i64> = get("retry", row, "following")?;
        let runs = get::<i64>("retry", row, "count")?.cast_unsigned();
        Ok(Retried { runs, next: next.map(i64::cast_unsigned) })
    }
}

/// The batch's row, and whether it was there before.
async fn found_or_new(
    transaction: &Transaction<'_>,
    batch: &NewBatch,
    again: bool,
) -> Result<(Row, bool), tokio_postgres::Error> {
    let lock = include_str!("sql/submit_lock.sql");
    transaction.query_typed(lock, &[(&batch.workload, Type::TEXT)]).await?;
    let params: Params<'_> = &[(&batch.workload, Type::TEXT), (&again, Type::BOOL)];
    let found = include_str!("sql/submit_found.sql");
    if let Some(found) = transaction.query_typed_opt(found, params).await? {
        return Ok((found, true));
    }
    let new = transaction.query_typed_one(SUBMIT, &Columns::of(batch).params()).await?;
    Ok((new, false))
}

/// What the statement takes, in the forms that it takes.
struct Columns<'b> {
    batch: &'b NewBatch,
    snapshot: Vec<u8>,
    text: &'b str,
    seed: i64,
    runs: i64,
    keep: String,
    max_attempts: i32,
    backoff: i64,
    backoff_cap: i64,
    timeout: Option<i64>,
}

impl<'b> Columns<'b> {
    fn of(batch: &'b NewBatch) -> Self {
        Self {
            batch,
            snapshot: batch.snapshot.hash().0.to_vec(),
            text: batch.snapshot.text(),
            seed: batch.seed as i64,
            runs: batch.runs as i64,
            keep: batch.keep.to_string(),
            max_attempts: i32::try_from(batch.retry.max_attempts).unwrap_or(i32::MAX),
            backoff: millis(batch.retry.base),
            backoff_cap: millis(batch.retry.cap),
            timeout: batch.timeout.map(millis),
        }
    }

    fn params(&self) -> [(&(dyn ToSql + Sync), Type); 10] {
        [
            (&self.snapshot, Type::BYTEA),
            (&self.text, Type::TEXT),
            (&self.batch.workload, Type::TEXT),
            (&self.seed, Type::INT8),
            (&self.runs, Type::INT8),
            (&self.keep, Type::TEXT),
            (&self.max_attempts, Type::INT4),
            (&self.backoff, Type::INT8),
            (&self.backoff_cap, Type::INT8),
            (&self.timeout, Type::INT8),
        ]
    }
}

fn missing(operation: &'static str, batch: BatchId) -> StoreError {
    let message = format!("there is no batch {batch}");
    StoreError::new(Kind::NotFound, Class::Permanent, operation, message)
}

fn refused(operation: &'static str, message: String) -> StoreError {
    StoreError::new(Kind::Refused, Class::Permanent, operation, message)
}
