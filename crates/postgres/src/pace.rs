//! Notes about the pace of sinks.

use crate::{
    Postgres,
    decode::{get, millis},
};
use async_trait::async_trait;
use std::time::Duration;
use tidegate_core::{
    BatchId, StoreError, WorkerId,
    limits::MAX_LISTED,
    pace::{NotedPace, PaceBook, PaceNote, PaceQuery},
};
use tokio_postgres::{Row, types::Type};

#[async_trait]
impl PaceBook for Postgres {
    async fn note_pace(&self, note: PaceNote) -> Result<(), StoreError> {
        let params = [
            (&note.batch.0 as _, Type::INT8),
            (&note.worker.0 as _, Type::TEXT),
            (&note.sink as _, Type::TEXT),
            (&note.body as _, Type::TEXT),
        ];
        self.pool.query("note pace", include_str!("sql/pace_note.sql"), &params).await?;
        Ok(())
    }

    async fn paces(&self, query: PaceQuery) -> Result<Vec<NotedPace>, StoreError> {
        let params = [
            (&query.batch.map(|batch| batch.0) as _, Type::INT8),
            (&query.sink as _, Type::TEXT),
            (&query.within.map(millis) as _, Type::INT8),
            (&(query.limit.min(MAX_LISTED) as i64) as _, Type::INT8),
        ];
        let rows = self.pool.query(READ, include_str!("sql/pace_read.sql"), &params).await?;
        rows.iter().map(noted).collect()
    }
}

const READ: &str = "read pace";

fn noted(row: &Row) -> Result<NotedPace, StoreError> {
    let note = PaceNote {
        batch: BatchId(get(READ, row, "batch_id")?),
        worker: WorkerId(get(READ, row, "worker")?),
        sink: get(READ, row, "sink")?,
        body: get(READ, row, "body")?,
    };
    let age = get::<i64>(READ, row, "age_ms")?;
    Ok(NotedPace { note, age: Duration::from_millis(age.max(0).unsigned_abs()) })
}
