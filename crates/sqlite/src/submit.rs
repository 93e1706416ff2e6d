//! New batches, and what people do to them.

use crate::{
    Sqlite,
    errors::{Failure, corrupt},
    sql::{Sql, millis},
};
use async_trait::async_trait;
use rusqlite::params;
use tidegate_core::{
    Batch, BatchId, BatchState, Class, Fence, Kind, StoreError, Submit,
    limits::MAX_RETRIED,
    submit::{NewBatch, Once, Retried},
};

#[async_trait]
impl Submit for Sqlite {
    async fn submit(&self, batch: NewBatch) -> Result<Batch, StoreError> {
        batch.check()?;
        let batch = self.write("submit", move |sql| submit(sql, batch)).await?;
        self.hint();
        Ok(batch)
    }

    async fn submit_once(&self, batch: NewBatch, again: bool) -> Result<Once, StoreError> {
        batch.check()?;
        let once = self.write("submit", move |sql| submit_once(sql, batch, again)).await?;
        self.hint();
        Ok(once)
    }

    async fn cancel(&self, batch: BatchId) -> Result<(), StoreError> {
        self.write("cancel", move |sql| cancel(sql, batch)).await
    }

    async fn retry(&self, batch: BatchId, from: u64) -> Result<Retried, StoreError> {
        let retried = self.write("retry", move |sql| retry(sql, batch, from)).await?;
        self.hint();
        Ok(retried)
    }
}

fn submit(sql: &Sql, batch: NewBatch) -> Result<Batch, Failure> {
    let now = sql.now()?;
    let hash = batch.snapshot.hash().0;
    let snapshot = params![hash, batch.snapshot.text()];
    sql.execute(include_str!("sql/submit_snapshot.sql"), snapshot)?;
    let params = params![
        batch.workload,
        hash,
        batch.seed.cast_signed(),
        batch.runs,
        batch.keep.to_string(),
        batch.retry.max_attempts,
        millis(batch.retry.base),
        millis(batch.retry.cap),
        batch.timeout.map(millis),
        now.0,
    ];
    let id = sql.row(include_str!("sql/submit_batch.sql"), params, |row| row.get(0))?;
    let id = id.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(batch.into_batch(BatchId(id)))
}

fn submit_once(sql: &Sql, batch: NewBatch, again: bool) -> Result<Once, Failure> {
    let found = include_str!("sql/submit_found.sql");
    Ok(match sql.row(found, params![batch.workload, again], |row| row.get(0))? {
        Some(id) => Once { id: BatchId(id), found: true },
        None => Once { id: submit(sql, batch)?.id, found: false },
    })
}

fn cancel(sql: &Sql, batch: BatchId) -> Result<(), Failure> {
    let state = state(sql, "cancel", batch)?;
    if state != BatchState::Running {
        let message = format!("batch {batch} is {}, not running", state.as_str());
        return Err(refused("cancel", message));
    }
    let now = sql.now()?;
    sql.execute(include_str!("sql/cancel_batch.sql"), [batch.0, now.0])?;
    sql.execute(include_str!("sql/cancel_leases.sql"), [batch.0, Fence::NOBODY.0])?;
    sql.execute(include_str!("sql/cancel_retries.sql"), [batch.0])?;
    Ok(())
}

fn retry(sql: &Sql, batch: BatchId, from: u64) -> Result<Retried, Failure> {
    if state(sql, "retry", batch)? == BatchState::Cancelled {
        let message = format!("batch {batch} was cancelled; submit it again instead");
        return Err(refused("retry", message));
    }
    let now = sql.now()?;
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let page = params![batch.0, from, MAX_RETRIED];
    let next: Option<i64> = sql.row(include_str!("sql/retry_page.sql"), page, |row| row.get(0))?;
    let page = params![batch.0, now.0, from, next.unwrap_or(i64::MAX)];
    let runs = sql.execute(include_str!("sql/retry_dead.sql"), page)? as u64;
    if runs > 0 {
        sql.execute(include_str!("sql/retry_batch.sql"), [batch.0])?;
    }
    Ok(Retried { runs, next: next.map(i64::cast_unsigned) })
}

fn state(sql: &Sql, operation: &'static str, batch: BatchId) -> Result<BatchState, Failure> {
    let state: Option<String> =
        sql.row(include_str!("sql/submit_state.sql"), [batch.0], |row| row.get(0))?;
    let state = state.ok_or_else(|| {
        let message = format!("there is no batch {batch}");
        StoreError::new(Kind::NotFound, Class::Permanent, operation, message)
    })?;
    let damaged = || corrupt(operation, format!("the state of batch {batch}"));
    Ok(BatchState::parse(&state).ok_or_else(damaged)?)
}

fn refused(operation: &'static str, message: String) -> Failure {
    StoreError::new(Kind::Refused, Class::Permanent, operation, message).into()
}
