//! New batches, and what people do to them.

use crate::{
    Postgres,
    decode::{get, millis, state},
    error::corrupt,
};
use async_trait::async_trait;
use tidegate_core::{
    Batch, BatchId, BatchState, Class, Fence, Kind, StoreError, Submit, submit::NewBatch,
};
use tokio_postgres::types::Type;

#[async_trait]
impl Submit for Postgres {
    async fn submit(&self, batch: NewBatch) -> Result<Batch, StoreError> {
        batch.check()?;
        let rows = self
            .pool
            .query(
                "submit",
                include_str!("sql/submit.sql"),
                &[
                    (&&batch.snapshot.hash().0[..], Type::BYTEA),
                    (&batch.snapshot.text(), Type::TEXT),
                    (&batch.workload, Type::TEXT),
                    (&(batch.seed as i64), Type::INT8),
                    (&(batch.runs as i64), Type::INT8),
                    (&batch.keep.to_string(), Type::TEXT),
                    (&i32::try_from(batch.retry.max_attempts).unwrap_or(i32::MAX), Type::INT4),
                    (&millis(batch.retry.base), Type::INT8),
                    (&millis(batch.retry.cap), Type::INT8),
                    (&batch.timeout.map(millis), Type::INT8),
                ],
            )
            .await?;
        let row = rows.first().ok_or_else(|| corrupt("submit", "the new batch has no number"))?;
        Ok(batch.into_batch(BatchId(get("submit", row, "id")?)))
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

    async fn retry(&self, batch: BatchId) -> Result<u64, StoreError> {
        let sql = include_str!("sql/retry.sql");
        let rows = self.pool.query("retry", sql, &[(&batch.0, Type::INT8)]).await?;
        let row = rows.first().ok_or_else(|| missing("retry", batch))?;
        match state("retry", row)? {
            BatchState::Cancelled => Err(refused(
                "retry",
                format!("batch {batch} was cancelled; submit it again instead"),
            )),
            _ => get::<i64>("retry", row, "count").map(|count| count as u64),
        }
    }
}

fn missing(operation: &'static str, batch: BatchId) -> StoreError {
    let message = format!("there is no batch {batch}");
    StoreError::new(Kind::NotFound, Class::Permanent, operation, message)
}

fn refused(operation: &'static str, message: String) -> StoreError {
    StoreError::new(Kind::Refused, Class::Permanent, operation, message)
}
