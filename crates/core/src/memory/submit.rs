//! New batches, and what people do to them.

use super::{Content, Memory, Row, Tries};
use crate::{
    Batch, BatchId, BatchState, Class, ExceptionState, Fence, Kind, StoreError, Submit,
    limits::MAX_RETRIED,
    submit::{NewBatch, Once, Retried},
};
use async_trait::async_trait;
use std::{collections::BTreeMap, time::Duration};

impl Content {
    fn submit(&mut self, batch: NewBatch, now: Duration) -> Batch {
        self.last_batch += 1;
        let id = BatchId(self.last_batch);
        self.snapshots.insert(batch.snapshot.hash(), batch.snapshot.clone());
        let batch = batch.into_batch(id);
        let row = Row {
            batch: batch.clone(),
            state: BatchState::Running,
            cursor: 0,
            created: now,
            finished: None,
            leases: BTreeMap::new(),
            exceptions: BTreeMap::new(),
            pages: BTreeMap::new(),
            parts: BTreeMap::new(),
        };
        self.batches.insert(id, row);
        batch
    }
}

#[async_trait]
impl Submit for Memory {
    async fn submit(&self, batch: NewBatch) -> Result<Batch, StoreError> {
        batch.check()?;
        let now = self.now();
        Ok(self.content().submit(batch, now))
    }

    async fn submit_once(&self, batch: NewBatch, again: bool) -> Result<Once, StoreError> {
        batch.check()?;
        let now = self.now();
        let mut content = self.content();
        let same = content.batches.values().filter(|row| row.batch.workload == batch.workload);
        let counts = |row: &&Row| match row.state {
            BatchState::Running => true,
            BatchState::Completed | BatchState::CompletedWithFailures => !again,
            BatchState::Cancelled => false,
        };
        let found =
            same.filter(counts).max_by_key(|row| (row.state == BatchState::Running, row.batch.id));
        Ok(match found.map(|row| row.batch.id) {
            Some(id) => Once { id, found: true },
            None => Once { id: content.submit(batch, now).id, found: false },
        })
    }

    async fn cancel(&self, batch: BatchId) -> Result<(), StoreError> {
        let now = self.now();
        let mut content = self.content();
        let row = content.batches.get_mut(&batch).ok_or_else(|| missing("cancel", batch))?;
        if row.state != BatchState::Running {
            let message = format!("batch {batch} is {}, not running", row.state.as_str());
            return Err(StoreError::new(Kind::Refused, Class::Permanent, "cancel", message));
        }
        row.state = BatchState::Cancelled;
        row.finished = Some(now);
        // The rows stay, for the count of what was never settled; nobody holds them any more.
        row.leases.values_mut().for_each(|lease| lease.fence = Fence::NOBODY);
        row.exceptions.values_mut().for_each(|exception| exception.fence = None);
        Ok(())
    }

    async fn retry(&self, batch: BatchId, from: u64) -> Result<Retried, StoreError> {
        let now = self.now();
        let mut content = self.content();
        let row = content.batches.get_mut(&batch).ok_or_else(|| missing("retry", batch))?;
        if row.state == BatchState::Cancelled {
            let message = format!("batch {batch} was cancelled; submit it again instead");
            return Err(StoreError::new(Kind::Refused, Class::Permanent, "retry", message));
        }
        let dead = row.exceptions.range_mut(from..);
        let mut dead = dead.filter(|(_, exception)| exception.state == ExceptionState::Dead);
        let mut retried = Retried::default();
        for (_, exception) in dead.by_ref().take(MAX_RETRIED as usize) {
            exception.state = ExceptionState::Retry;
            exception.attempts = 0;
            exception.due = now;
            exception.tries = Tries::default();
            retried.runs += 1;
        }
        retried.next = dead.next().map(|(index, _)| *index);
        if retried.runs > 0 {
            row.state = BatchState::Running;
            row.finished = None;
        }
        Ok(retried)
    }
}

fn missing(operation: &'static str, batch: BatchId) -> StoreError {
    let message = format!("there is no batch {batch}");
    StoreError::new(Kind::NotFound, Class::Permanent, operation, message)
}
