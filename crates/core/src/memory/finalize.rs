//! Closing batches that have nothing outstanding, exactly once.

use super::{Content, Row};
use crate::{
    Aggregates, BatchId, BatchState, Class, ExceptionState, Kind, StoreError, source::Finalized,
};
use std::time::Duration;

impl Content {
    pub(super) fn finalize(
        &mut self,
        batches: Vec<BatchId>,
        now: Duration,
    ) -> Result<Vec<Finalized>, StoreError> {
        let mut finalized = Vec::new();
        for batch in batches {
            let Some(row) = self.batches.get_mut(&batch) else { continue };
            if row.is_settled() {
                finalized.push(row.finalize(now)?);
            }
        }
        Ok(finalized)
    }
}

impl Row {
    fn finalize(&mut self, now: Duration) -> Result<Finalized, StoreError> {
        self.aggregates("finalize")?;
        self.finished = Some(now);
        self.state = match self.count(ExceptionState::Dead) {
            0 => BatchState::Completed,
            _ => BatchState::CompletedWithFailures,
        };
        Ok(Finalized { batch: self.batch.id, state: self.state })
    }

    pub(super) fn aggregates(&self, operation: &'static str) -> Result<Aggregates, StoreError> {
        let mut aggregates = Aggregates::default();
        for (_, body) in self.parts.values() {
            let part = Aggregates::decode(body).ok_or_else(|| {
                let message = format!("the aggregates of batch {} are damaged", self.batch.id);
                StoreError::new(Kind::Corrupt, Class::Permanent, operation, message)
            })?;
            aggregates.merge(&part);
        }
        Ok(aggregates)
    }
}
