//! Reading for people.

use super::{Memory, Row};
use crate::{
    Aggregates, BatchId, Exception, ExceptionState, Inspect, Page, Snapshot, SnapshotHash,
    StoreError,
    inspect::{BatchQuery, BatchStatus, ExceptionQuery, PageQuery, Progress},
    limits::MAX_LISTED,
};
use async_trait::async_trait;
use std::time::Duration;

#[async_trait]
impl Inspect for Memory {
    async fn batches(&self, query: BatchQuery) -> Result<Vec<BatchStatus>, StoreError> {
        let (content, now) = (self.content(), self.now());
        let matching = content.batches.values().rev().filter(|row| {
            query.id.is_none_or(|id| id == row.batch.id)
                && query.state.is_none_or(|state| state == row.state)
                && query.before.is_none_or(|before| row.batch.id < before)
        });
        Ok(matching.take(query.limit.min(MAX_LISTED)).map(|row| row.status(now)).collect())
    }

    async fn aggregates(&self, batch: BatchId) -> Result<Aggregates, StoreError> {
        let content = self.content();
        let aggregates = content.batches.get(&batch).map(|row| row.aggregates("read aggregates"));
        aggregates.unwrap_or_else(|| Ok(Aggregates::default()))
    }

    async fn exceptions(&self, query: ExceptionQuery) -> Result<Vec<Exception>, StoreError> {
        let content = self.content();
        let Some(row) = content.batches.get(&query.batch) else { return Ok(Vec::new()) };
        let matching = row
            .exceptions
            .range(query.from..)
            .filter(|(_, exception)| query.state.is_none_or(|state| state == exception.state))
            .take(query.limit.min(MAX_LISTED));
        let exception = |(index, row): (&u64, &super::ExceptionRow)| Exception {
            batch: query.batch,
            index: *index,
            attempts: row.attempts,
            state: row.state,
            reason: row.reason.clone(),
        };
        Ok(matching.map(exception).collect())
    }

    async fn pages(&self, query: PageQuery) -> Result<Vec<Page>, StoreError> {
        let content = self.content();
        let Some(row) = content.batches.get(&query.batch) else { return Ok(Vec::new()) };
        let pages = row.pages.range(query.from..).map(|(_, page)| page);
        let pages = pages.filter(|page| page.range.hi > query.beyond);
        Ok(pages.take(query.limit.min(MAX_LISTED)).cloned().collect())
    }

    async fn snapshot(&self, hash: SnapshotHash) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.content().snapshots.get(&hash).cloned())
    }
}

impl Row {
    fn status(&self, now: Duration) -> BatchStatus {
        let leases = |ended: bool| {
            let leases = self.leases.iter().filter(|(_, lease)| (lease.expires <= now) == ended);
            leases.map(|(hi, lease)| hi - lease.lo).sum()
        };
        BatchStatus {
            batch: self.batch.clone(),
            state: self.state,
            progress: Progress::derive(
                self.batch.runs,
                self.cursor,
                leases(false),
                leases(true),
                self.count(ExceptionState::Retry),
                self.count(ExceptionState::Dead),
            ),
            created_ms: self.created.as_millis() as i64,
            finished_ms: self.finished.map(|finished| finished.as_millis() as i64),
        }
    }
}
