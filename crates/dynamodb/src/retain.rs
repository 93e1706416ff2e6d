//! What becomes of messages that were delivered: they are read and removed in sets.
//!
//! A table with a time to live removes them by itself, and for nothing.

mod find;
mod shards;

use crate::{
    DynamoDb,
    error::Failure,
    item::{
        name::{ASIDE, DELIVERY_TIME, MESSAGE_ID, OUTSTANDING},
        number, text,
    },
    ticks::Ticks,
};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures_util::{StreamExt, TryStreamExt, stream};
use shards::Shards;
use std::{collections::BTreeMap, sync::MutexGuard, time::Duration};
use tidegate_core::{Message, MessageId, Retain, StoreError, outbox::Sealed};

const OPERATION: &str = "remove messages";

/// Messages of one set, at most: they are kept in memory until they are removed.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 16 << 20;

/// Messages that are removed at a time; the pacer may allow fewer requests.
const AT_ONCE: usize = 64;

/// Sets that were found and are not removed yet.
#[derive(Debug, Default)]
pub(crate) struct SealedSets {
    last: i64,
    sets: BTreeMap<i64, Vec<Delivered>>,
    shards: Shards,
}

/// A message, and when it was delivered.
#[derive(Debug)]
struct Delivered {
    message: Message,
    at: Ticks,
}

#[async_trait]
impl Retain for DynamoDb {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        let mut messages = self.find_delivered(Ticks::now().before(age)).await?.messages;
        // An index has an order of its own.
        messages.sort_by(|one, other| one.message.id.cmp(&other.message.id));
        if messages.is_empty() {
            return Ok(None);
        }
        let mut sealed = self.sealed_sets();
        // Who asks again has given up what was found before.
        sealed.sets.clear();
        sealed.last += 1;
        let (place, count) = (sealed.last, messages.len() as u64);
        sealed.sets.insert(place, messages);
        Ok(Some(Sealed { place, messages: count }))
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let sets = self.sealed_sets();
        let Some(messages) = sets.sets.get(&sealed.place) else { return Ok(Vec::new()) };
        let begin = match after {
            None => 0,
            Some(after) => match messages.iter().position(|it| it.message.id == after) {
                Some(at) => at + 1,
                None => return Ok(Vec::new()),
            },
        };
        Ok(messages[begin..].iter().take(limit).map(|it| it.message.clone()).collect())
    }

    /// What was made outstanding again meanwhile stays, whatever becomes of the others.
    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        let messages = self.sealed_sets().sets.remove(&sealed.place).unwrap_or_default();
        let removed = stream::iter(messages)
            .map(async |it| self.remove(&it.message.name, it.at).await)
            .buffer_unordered(AT_ONCE);
        removed.try_fold(0, async |sum, removed| Ok(sum + u64::from(removed))).await
    }
}

impl DynamoDb {
    /// Removes a message that was delivered at that time, and not since. Returns whether it was there.
    async fn remove(&self, id: &str, at: Ticks) -> Result<bool, StoreError> {
        let request = self
            .client
            .sdk
            .delete_item()
            .table_name(&self.address().table)
            .key(MESSAGE_ID, text(id))
            .condition_expression(
                "#delivered = :at AND attribute_not_exists(#outstanding) AND attribute_not_exists(#aside)",
            )
            .expression_attribute_names("#delivered", DELIVERY_TIME)
            .expression_attribute_names("#outstanding", OUTSTANDING)
            .expression_attribute_names("#aside", ASIDE)
            .expression_attribute_values(":at", number(at.0))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        match self.client.call(OPERATION, || request.clone().send()).await {
            Ok(_) => Ok(true),
            Err(Failure::Condition) => Ok(false),
            Err(failure) => Err(failure.into_error(OPERATION)),
        }
    }

    fn sealed_sets(&self) -> MutexGuard<'_, SealedSets> {
        self.sealed.lock().expect("nothing panics while it holds the lock")
    }
}
