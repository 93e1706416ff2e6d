//! Closing batches.

use crate::{claim::Claimer, worker::WorkerError};
use tidegate_core::BatchId;

impl Claimer {
    /// Closes batches that a claim found settled. Whoever finds them may do it; for each, one does.
    /// Returns how many this worker closed. A failure that may pass is left to the next claim.
    pub(crate) async fn finalize(&mut self, settled: &[BatchId]) -> Result<u64, WorkerError> {
        let mut closed = 0;
        // Usually one. One by one, so that one that cannot be closed holds up no other.
        for batch in settled {
            if !self.damaged.contains(batch) {
                closed += self.finalize_one(*batch).await?;
            }
        }
        Ok(closed)
    }

    async fn finalize_one(&mut self, batch: BatchId) -> Result<u64, WorkerError> {
        match self.shared.source.finalize(vec![batch]).await {
            Ok(finalized) => {
                for closed in &finalized {
                    tracing::info!("batch {} is {}", closed.batch, closed.state.as_str());
                }
                self.finalized.extend(&finalized);
                Ok(finalized.len() as u64)
            }
            Err(error) if !error.is_passing() => {
                tracing::error!("{error}; going on with other batches");
                self.damaged.insert(batch);
                Ok(0)
            }
            Err(error) => self.recover(error).await.map(|()| 0),
        }
    }
}
