//! What becomes of messages that were delivered: they are read and removed in sets.
//!
//! A table with a time to live removes them by itself, and for nothing.

use crate::{
    DynamoDb,
    item::{
        Item, decode,
        name::{CREATED_TIME, DELIVERY_TIME},
        number,
    },
    ticks::Ticks,
};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use std::{collections::BTreeMap, sync::MutexGuard, time::Duration};
use tidegate_core::{
    Message, MessageId, Retain, StoreError,
    outbox::{Origin, Position, Sealed},
};

const OPERATION: &str = "remove messages";

/// Messages of one set, at most: they are kept in memory until they are removed.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 16 << 20;

/// Sets that were found and are not removed yet.
#[derive(Debug, Default)]
pub(crate) struct SealedSets {
    last: i64,
    sets: BTreeMap<i64, Vec<Message>>,
}

#[async_trait]
impl Retain for DynamoDb {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        let messages = self.find_delivered(Ticks::now().before(age)).await?;
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
            Some(after) => match messages.iter().position(|message| message.id == after) {
                Some(at) => at + 1,
                None => return Ok(Vec::new()),
            },
        };
        Ok(messages[begin..].iter().take(limit).cloned().collect())
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        let messages = self.sealed_sets().sets.remove(&sealed.place).unwrap_or_default();
        let ids: Vec<String> = messages.into_iter().map(|message| message.name).collect();
        // Somebody may have made one outstanding again.
        let items = self.client.get_all(OPERATION, &ids, None).await?;
        let is_sent = |id: &String| items.get(id).and_then(decode).is_some_and(|it| is_sent(&it));
        if !ids.iter().all(is_sent) {
            return Ok(0);
        }
        self.client.delete_all(OPERATION, &ids).await?;
        Ok(ids.len() as u64)
    }
}

fn is_sent(found: &crate::item::Found) -> bool {
    found.is_delivered && found.outstanding.is_none() && found.aside.is_none()
}

impl DynamoDb {
    /// Messages that were delivered, and made before a time.
    async fn find_delivered(&self, before: Ticks) -> Result<Vec<Message>, StoreError> {
        let (mut from, mut messages, mut bytes) = (None, Vec::new(), 0);
        loop {
            let request = self
                .client
                .sdk
                .scan()
                .table_name(&self.address().table)
                .index_name(&self.address().indexes.delivered_all)
                .filter_expression("#created <= :before AND attribute_exists(#delivered)")
                .expression_attribute_names("#created", CREATED_TIME)
                .expression_attribute_names("#delivered", DELIVERY_TIME)
                .expression_attribute_values(":before", number(before.0))
                .limit(MOST as i32)
                .set_exclusive_start_key(from)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = self.client.call(OPERATION, || request.clone().send()).await;
            let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
            let found =
                answer.items().iter().filter_map(|item: &Item| decode(item)).filter(is_sent);
            for found in found {
                bytes += found.message.payload.len();
                messages.push(found.message(Position::default(), Origin::Lane { due_in: None }));
            }
            from = answer.last_evaluated_key().filter(|key| !key.is_empty()).cloned();
            if from.is_none() || messages.len() >= MOST || bytes >= MOST_BYTES {
                return self.verified(messages).await;
            }
        }
    }

    /// An index may show what was removed a moment ago.
    async fn verified(&self, mut messages: Vec<Message>) -> Result<Vec<Message>, StoreError> {
        let ids: Vec<String> = messages.iter().map(|message| message.name.clone()).collect();
        let items = self.client.get_all(OPERATION, &ids, None).await?;
        messages.retain(|message| {
            items.get(&message.name).and_then(decode).is_some_and(|it| is_sent(&it))
        });
        // An index has an order of its own.
        messages.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(messages)
    }

    fn sealed_sets(&self) -> MutexGuard<'_, SealedSets> {
        self.sealed.lock().expect("nothing panics while it holds the lock")
    }
}
