//! Messages come in.

use super::{OutboxContent, Stored};
use crate::{
    Memory, MessageId, NewMessage, Publish, StoreError,
    outbox::{KeyHash, LANES, Lane, Position},
};
use async_trait::async_trait;
use std::time::Duration;

#[async_trait]
impl Publish for Memory {
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        messages.iter().try_for_each(NewMessage::check)?;
        let (mut content, now) = (self.content(), self.now());
        let outbox = &mut content.outbox;
        outbox.outstanding().admit()?;
        Ok(messages.into_iter().map(|message| outbox.add(message, now)).collect())
    }

    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError> {
        self.content().outbox.limit = most;
        Ok(())
    }
}

impl OutboxContent {
    fn add(&mut self, message: NewMessage, now: Duration) -> MessageId {
        self.last_id += 1;
        let position = Position(self.last_id);
        let bucket =
            message.key.as_deref().map_or(position.0 as u64, |key| KeyHash::of(key).0 as u64);
        let stored = Stored {
            lane: Lane((bucket % u64::from(LANES)) as u16),
            topic: message.topic,
            key: message.key,
            headers: message.headers,
            payload: message.payload,
            published: now,
            not_before: message.delay.map(|delay| now + delay),
        };
        self.messages.insert(position, stored);
        position.into()
    }
}
