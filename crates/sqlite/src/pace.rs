//! Notes about the pace of sinks.

use crate::{
    Sqlite,
    sql::{Millis, millis},
};
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
            let since =
                query.within.map_or(i64::MIN, |within| now.0.saturating_sub(millis(within)));
            let batch = query.batch.map(|batch| batch.0);
            let params = params![batch, query.sink, since, query.limit.min(MAX_LISTED)];
            let text = match query.sink {
                Some(_) => include_str!("sql/pace_of_sink.sql"),
                None => include_str!("sql/pace_read.sql"),
            };
            Ok(sql.rows(text, params, |row| noted(row, now))?)
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
