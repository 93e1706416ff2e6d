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

impl Memory {
    /// Stores messages at positions that were drawn before, in whatever order, as transactions do when they commit.
    pub fn publish_as(&self, messages: Vec<(Position, NewMessage)>) -> Result<(), StoreError> {
        messages.iter().try_for_each(|(_, message)| message.check())?;
        let (mut content, now) = (self.content(), self.now());
        messages.into_iter().for_each(|(at, message)| content.outbox.add_as(at, message, now));
        Ok(())
    }
}

impl OutboxContent {
    fn add(&mut self, message: NewMessage, now: Duration) -> MessageId {
        let position = Position(self.last_id + 1);
        self.add_as(position, message, now);
        position.into()
    }

    fn add_as(&mut self, position: Position, message: NewMessage, now: Duration) {
        self.last_id = self.last_id.max(position.0);
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
    }
}
