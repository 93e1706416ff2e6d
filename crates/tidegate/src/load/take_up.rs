//! Going on with a load that was begun before, or beginning it.

use super::Load;
use crate::OpenStore;
use tidegate_core::{
    Class, Kind, StoreError,
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
    /// One that was done is not done again unless that is asked for. Processes that begin it at the same
    /// time all work on the same one.
    pub async fn take_up(&self, store: &OpenStore, again: bool) -> Result<TakenUp, StoreError> {
        let once = store.submit_once(self.batch(), again).await?;
        let status = store.batches(BatchQuery::one(once.id)).await?.pop();
        let status = status.ok_or_else(|| {
            let message = format!("load {} was removed just now", once.id);
            StoreError::new(Kind::NotFound, Class::Permanent, "take up load", message)
        })?;
        Ok(TakenUp { status, resumed: once.found })
    }
}
