//! Messages do not come in here, and none are removed: the table is its application's.

use super::Adopted;
use async_trait::async_trait;
use std::time::Duration;
use tidegate_core::{
    Class, Kind, Message, MessageId, NewMessage, Publish, Retain, StoreError, outbox::Sealed,
};

#[async_trait]
impl Publish for Adopted {
    async fn publish(&self, _: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        Err(self.not_ours("nothing is published to it by Tidegate"))
    }

    async fn limit_outstanding(&self, _: Option<u64>) -> Result<(), StoreError> {
        Err(self.not_ours("Tidegate cannot limit what is outstanding in it"))
    }
}

/// Removing what was sent is up to the application, unless `done` deletes it.
#[async_trait]
impl Retain for Adopted {
    async fn seal(&self, _: Duration) -> Result<Option<Sealed>, StoreError> {
        Ok(None)
    }

    async fn sealed(
        &self,
        _: Sealed,
        _: Option<MessageId>,
        _: usize,
    ) -> Result<Vec<Message>, StoreError> {
        Ok(Vec::new())
    }

    async fn discard(&self, _: Sealed) -> Result<u64, StoreError> {
        Ok(0)
    }
}

impl Adopted {
    fn not_ours(&self, so: &str) -> StoreError {
        let table = &self.plan.table.adopted;
        let message = format!("{table} is an adopted table, its application writes to it: {so}");
        StoreError::new(Kind::Refused, Class::Permanent, "publish", message)
    }
}
