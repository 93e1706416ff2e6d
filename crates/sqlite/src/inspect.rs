//! Reading for people. Each answer is one statement, so it shows one moment and holds the log of no
//! writer back for long.

use crate::{Sqlite, errors::Failure, finalize, row, sql::Sql};
use async_trait::async_trait;
use rusqlite::{Row, params};
use tidegate_core::{
    Aggregates, BatchId, BatchState, Exception, ExceptionState, Inspect, Page, Range, Snapshot,
    SnapshotHash, StoreError,
    inspect::{BatchQuery, BatchStatus, ExceptionQuery, PageQuery, Progress},
    limits::MAX_LISTED,
};

#[async_trait]
impl Inspect for Sqlite {
    async fn batches(&self, query: BatchQuery) -> Result<Vec<BatchStatus>, StoreError> {
        self.read("list batches", move |sql| batches(sql, &query)).await
    }

    async fn aggregates(&self, batch: BatchId) -> Result<Aggregates, StoreError> {
        let operation = "read aggregates";
        self.read(operation, move |sql| finalize::aggregates(sql, batch, operation)).await
    }

    async fn exceptions(&self, query: ExceptionQuery) -> Result<Vec<Exception>, StoreError> {
        self.read("list exceptions", move |sql| exceptions(sql, &query)).await
    }

    async fn pages(&self, query: PageQuery) -> Result<Vec<Page>, StoreError> {
        self.read("read pages", move |sql| pages(sql, &query)).await
    }

    async fn snapshot(&self, hash: SnapshotHash) -> Result<Option<Snapshot>, StoreError> {
        self.read("read snapshot", move |sql| {
            let text = sql.row(crate::SNAPSHOT, [hash.0], |row| row.get(0))?;
            Ok(text.map(Snapshot::from_canonical))
        })
        .await
    }
}

fn batches(sql: &Sql, query: &BatchQuery) -> Result<Vec<BatchStatus>, Failure> {
    let before = query.before.map_or(i64::MAX, |before| before.0.saturating_sub(1));
    let least = query.id.map_or(i64::MIN, |id| id.0);
    let most = query.id.map_or(before, |id| id.0.min(before));
    let state = query.state.map(BatchState::as_str);
    let params = params![least, most, state, query.limit.min(MAX_LISTED), sql.now()?.0];
    Ok(sql.rows(include_str!("sql/inspect_batches.sql"), params, status)?)
}

fn status(row: &Row<'_>) -> rusqlite::Result<BatchStatus> {
    let batch = row::batch(row)?;
    let progress = Progress::derive(
        batch.runs,
        row.get("cursor")?,
        row.get("leased")?,
        row.get("ended")?,
        row.get("retrying")?,
        row.get("dead")?,
    );
    Ok(BatchStatus {
        batch,
        state: row::parsed(row, "state", |word: String| BatchState::parse(&word))?,
        progress,
        created_ms: row.get("created_ms")?,
        finished_ms: row.get("finished_ms")?,
    })
}

fn exceptions(sql: &Sql, query: &ExceptionQuery) -> Result<Vec<Exception>, Failure> {
    let state = query.state.map(ExceptionState::as_str);
    let params = params![query.batch.0, query.from, state, query.limit.min(MAX_LISTED)];
    let read = |row: &Row<'_>| {
        Ok(Exception {
            batch: query.batch,
            index: row.get("idx")?,
            attempts: row.get("attempts")?,
            state: row::parsed(row, "state", |word: String| ExceptionState::parse(&word))?,
            reason: row.get("reason")?,
        })
    };
    Ok(sql.rows(include_str!("sql/inspect_exceptions.sql"), params, read)?)
}

fn pages(sql: &Sql, query: &PageQuery) -> Result<Vec<Page>, Failure> {
    let limit = query.limit.min(MAX_LISTED);
    let params = params![query.batch.0, query.from, query.beyond, limit];
    Ok(sql.rows(include_str!("sql/inspect_pages.sql"), params, page)?)
}

fn page(row: &Row<'_>) -> rusqlite::Result<Page> {
    let indexes = row::parsed(row, "indexes", |text: Option<String>| match text {
        None => Some(None),
        Some(text) => serde_json::from_str(&text).ok().map(Some),
    })?;
    let range = Range { lo: row.get("lo")?, hi: row.get("hi")? };
    Ok(Page { range, indexes, results: row.get("results")? })
}
