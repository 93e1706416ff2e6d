//! Removing what was sent.

use super::OutboxContent;
use crate::{
    Memory, Message, MessageId, Retain, StoreError,
    outbox::{Origin, Position, Sealed},
};
use async_trait::async_trait;
use std::time::Duration;

#[async_trait]
impl Retain for Memory {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        let now = self.now();
        Ok(self.content().outbox.seal(now.saturating_sub(age)))
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let after = MessageId::number_before(after.as_ref());
        let content = self.content();
        let sent = content.outbox.sent(sealed).into_iter().filter(|id| id.0 > after).take(limit);
        let origin = || Origin::Lane { due_in: None };
        Ok(sent.filter_map(|id| content.outbox.message(id, origin())).collect())
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        let mut content = self.content();
        let sent = content.outbox.sent(sealed);
        if sent.len() as u64 != sealed.messages {
            return Ok(0);
        }
        sent.iter().for_each(|id| {
            content.outbox.messages.remove(id);
        });
        Ok(sent.len() as u64)
    }
}

impl OutboxContent {
    /// The highest id up to which all are old enough and none is to be read.
    fn seal(&self, published_before: Duration) -> Option<Sealed> {
        let old = self.messages.iter().take_while(|(id, stored)| {
            stored.published <= published_before && !self.is_unread(**id)
        });
        let sent: Vec<_> = old.filter(|(id, _)| !self.aside.contains_key(id)).collect();
        sent.last().map(|(id, _)| Sealed { place: id.0, messages: sent.len() as u64 })
    }

    fn sent(&self, sealed: Sealed) -> Vec<Position> {
        let ids = self.messages.range(..=Position(sealed.place)).map(|(id, _)| *id);
        ids.filter(|id| !self.aside.contains_key(id)).collect()
    }
}
