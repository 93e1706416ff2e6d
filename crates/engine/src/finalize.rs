//! Closing batches.

use crate::{claim::Claimer, worker::WorkerError};
use tidegate_core::BatchId;

impl Claimer {
    /// Closes batches that a claim found settled. Whoever finds them may do it; for each, one does.
    /// Returns how many this worker closed. A failure that may pass is left to the next claim.
    pub(crate) async fn finalize(&mut self, settled: Vec<BatchId>) -> Result<u64, WorkerError> {
        if settled.is_empty() {
            return Ok(0);
        }
        let finalized = match self.shared.source.finalize(settled).await {
            Ok(finalized) => finalized,
            Err(error) => {
                self.recover(error).await?;
                return Ok(0);
            }
        };
        for closed in &finalized {
            tracing::info!("batch {} is {}", closed.batch, closed.state.as_str());
            self.tuner.forget(closed.batch);
        }
        self.finalized.extend(&finalized);
        Ok(finalized.len() as u64)
    }
}
