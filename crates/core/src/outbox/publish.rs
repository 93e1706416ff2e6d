//! How messages come in.

use super::{MessageId, NewMessage};
use crate::StoreError;
use async_trait::async_trait;

/// Takes messages in a transaction of its own. Inside an application's transaction, each store has a
/// function that takes that transaction.
#[async_trait]
pub trait Publish: Send + Sync {
    /// Publishes messages in their order, all or none. Afterwards they are durable. Refused with
    /// [`Kind::Full`](crate::Kind::Full) if too many are outstanding.
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError>;

    /// Refuses messages from now on while so many or more are outstanding; `None`: never.
    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError>;
}
