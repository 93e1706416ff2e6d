//! What becomes of messages that were sent.

use super::{Message, MessageId};
use crate::StoreError;
use async_trait::async_trait;
use std::time::Duration;

/// Removes messages that were sent, many at a time.
#[async_trait]
pub trait Retain: Send + Sync {
    /// Finds messages that were all published longer ago than `age` and of which none is still to be
    /// read. Afterwards they do not change any more. `None` if there are no such.
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError>;

    /// The sealed messages that were sent, behind `after`, in the order of their ids.
    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError>;

    /// Removes sealed messages that were sent, if they are still those. What was set aside stays, with
    /// its payload. Returns how many were removed; zero if there is something new among them, which
    /// must be sealed again.
    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError>;
}

/// Names some messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Where the store keeps them.
    pub place: i64,
    /// How many were sent.
    pub messages: u64,
}
