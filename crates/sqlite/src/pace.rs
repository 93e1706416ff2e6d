//! Notes about the pace of sinks.

use crate::{Sqlite, sql::Millis};
use async_trait::async_trait;
use rusqlite::{Row, params};
use tidegate_core::{
    BatchId, StoreError, WorkerId,
    limits::MAX_LISTED,
    pace::{NotedPace, PaceBook, PaceNote, PaceQuery},
};

#[async_trait]
impl PaceBook for Sqlite {
    async fn note_pace(&self, note: PaceNote) -> Result<(), StoreError> {
        self.write("note pace", move |sql| {
            let params = params![note.batch.0, note.worker.0, note.sink, note.body, sql.now()?.0];
            sql.execute(include_str!("sql/pace_note.sql"), params)?;
            Ok(())
        })
        .await
    }

    async fn paces(&self, query: PaceQuery) -> Result<Vec<NotedPace>, StoreError> {
        self.read("read pace", move |sql| {
            let now = sql.now()?;
            let limit = query.limit.min(MAX_LISTED);
            let params = params![query.batch.map(|batch| batch.0), query.sink, limit];
            Ok(sql.rows(include_str!("sql/pace_read.sql"), params, |row| noted(row, now))?)
        })
        .await
    }
}

fn noted(row: &Row<'_>, now: Millis) -> rusqlite::Result<NotedPace> {
    let note = PaceNote {
        batch: BatchId(row.get("batch_id")?),
        worker: WorkerId(row.get("worker")?),
        sink: row.get("sink")?,
        body: row.get("body")?,
    };
    Ok(NotedPace { note, age: now.since(Millis(row.get("updated_ms")?)) })
}
