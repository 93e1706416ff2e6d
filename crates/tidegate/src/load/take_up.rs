//! Going on with a load that was begun before, or beginning it.

use super::Load;
use crate::OpenStore;
use tidegate_core::{
    BatchState, Class, Kind, StoreError,
    inspect::{BatchQuery, BatchStatus},
};

/// A load as it is found or begun in a store.
#[derive(Clone, Debug)]
pub struct TakenUp {
    /// Where it stands.
    pub status: BatchStatus,
    /// Whether it was begun before.
    pub resumed: bool,
}

impl Load {
    /// Finds the same load, or begins it: the same records, to the same place, by the same operation.
    /// One that was done is not done again unless that is asked for. Of processes that begin it at the
    /// same time, all work on the same one.
    pub async fn take_up(&self, store: &OpenStore, again: bool) -> Result<TakenUp, StoreError> {
        let found = self.begun(store).await?;
        let found = found.filter(|found| found.state == BatchState::Running || !again);
        if let Some(status) = found {
            return Ok(TakenUp { status, resumed: true });
        }
        let id = store.submit_once(self.batch()).await?;
        let begun = store.batches(BatchQuery::one(id)).await?.pop();
        let status = begun.ok_or_else(|| {
            let message = format!("load {id} was removed just after it was begun");
            StoreError::new(Kind::NotFound, Class::Permanent, "begin load", message)
        })?;
        Ok(TakenUp { status, resumed: false })
    }

    /// The one that is running, or the last one that was done.
    async fn begun(&self, store: &OpenStore) -> Result<Option<BatchStatus>, StoreError> {
        if let Some(running) = self.newest(store, BatchState::Running).await? {
            return Ok(Some(running));
        }
        let completed = self.newest(store, BatchState::Completed).await?;
        let failed = self.newest(store, BatchState::CompletedWithFailures).await?;
        Ok([completed, failed].into_iter().flatten().max_by_key(|status| status.batch.id))
    }

    async fn newest(
        &self,
        store: &OpenStore,
        state: BatchState,
    ) -> Result<Option<BatchStatus>, StoreError> {
        let (state, workload) = (Some(state), Some(self.identity.workload.clone()));
        let query = BatchQuery { state, workload, ..BatchQuery::newest(1) };
        Ok(store.batches(query).await?.pop())
    }
}
