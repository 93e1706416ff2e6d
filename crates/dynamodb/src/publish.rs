//! Writes messages: by themselves, or as a part of a caller's own transaction.

use crate::{
    DynamoDb, MAX_ACTIONS,
    error::refused,
    item::{Item, Outgoing, encode, size},
    settle::unbuilt,
    shard,
    ticks::Ticks,
};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tidegate_core::{
    InspectOutbox, MessageId, NewMessage, Publish, StoreError, limits::MAX_PUBLISHED,
    outbox::Outstanding,
};

const OPERATION: &str = "publish";

/// DynamoDB's own bound on the items of a transaction.
const MAX_BYTES: usize = 4 << 20;

/// How long a count of what is outstanding is believed.
pub(crate) const COUNTED: Duration = Duration::from_secs(1);

/// What this process remembers as a publisher.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    /// When the last message was made: of one process, each is later than the one before.
    last: AtomicI64,
    /// What is outstanding, as of when.
    counted: Mutex<Option<(Instant, Outstanding)>>,
}

impl Publisher {
    /// The times of so many messages, one after the other.
    fn times(&self, count: usize) -> Ticks {
        let (now, count) = (Ticks::now().0, count as i64);
        let next = |last: i64| (last + 1).max(now) + count - 1;
        let last = self.last.fetch_update(Relaxed, Relaxed, |last| Some(next(last)));
        Ticks(next(last.unwrap_or_default()) - count + 1)
    }
}

#[async_trait]
impl Publish for DynamoDb {
    /// Up to 100 messages of 4 MB are one transaction. More are written in batches, in any order, until all of them
    /// are there; if that fails, some of them may be there.
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        if messages.len() > MAX_PUBLISHED {
            return Err(refused(OPERATION, format!("at most {MAX_PUBLISHED} messages at a time")));
        }
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let named: Vec<(String, &NewMessage)> =
            messages.iter().map(|message| (new_id(), message)).collect();
        let items = self.encode_all(&named)?;
        self.admit().await?;
        let bytes: usize = items.iter().map(size).sum();
        match items.len() <= MAX_ACTIONS && bytes <= MAX_BYTES {
            true => {
                let actions = items.into_iter().map(|item| self.put(item));
                let actions = actions.collect::<Result<Vec<_>, _>>()?;
                let written = self.client.transact(OPERATION, actions).await;
                written.map_err(|failure| failure.into_error(OPERATION))?;
            }
            false => self.client.put_all(OPERATION, items).await?,
        }
        Ok(named.into_iter().map(|(id, _)| MessageId::text(id)).collect())
    }

    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError> {
        self.set_limit(most).await?;
        *self.counted() = None;
        Ok(())
    }
}

impl DynamoDb {
    /// The actions that publish messages, for the caller's own TransactWriteItems: they are published with whatever
    /// else is in it, or not at all. A message goes by the id that it is given here: the same again is the same
    /// message. A limit on outstanding messages is not looked at.
    pub fn items(
        &self,
        messages: &[(String, &NewMessage)],
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let actions = self.encode_all(messages)?.into_iter().map(|item| self.put(item));
        let actions = actions.collect::<Result<Vec<_>, _>>()?;
        check_transaction(&actions)?;
        Ok(actions)
    }

    /// Reads messages by their ids, all or none: an error names those that are missing.
    pub async fn messages(&self, ids: &[String]) -> Result<Vec<Item>, StoreError> {
        let mut found = self.client.get_every("read messages", ids).await?;
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    fn encode_all(&self, messages: &[(String, &NewMessage)]) -> Result<Vec<Item>, StoreError> {
        let first = self.publisher.times(messages.len());
        let shards = self.address().shards;
        let encoded = messages.iter().zip(0..).map(|((id, message), n)| {
            let shard = match &message.key {
                Some(key) => shard::of_key(key, shards),
                None => rand::random_range(0..shards),
            };
            encode(message, Outgoing { id, created: Ticks(first.0 + n), shard })
        });
        encoded.collect()
    }

    fn put(&self, item: Item) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder().table_name(&self.address().table).set_item(Some(item)).build();
        Ok(TransactWriteItem::builder().put(put.map_err(unbuilt)?).build())
    }

    /// Refuses messages while too many are outstanding.
    async fn admit(&self) -> Result<(), StoreError> {
        let known = *self.counted();
        let fresh = known.filter(|(at, _)| at.elapsed() < COUNTED);
        let outstanding = match fresh {
            Some((_, outstanding)) => outstanding,
            None => {
                let outstanding = match self.limit().await? {
                    None => Outstanding::default(),
                    Some(_) => self.outstanding().await?,
                };
                *self.counted() = Some((Instant::now(), outstanding));
                outstanding
            }
        };
        outstanding.admit()
    }

    fn counted(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Outstanding)>> {
        self.publisher.counted.lock().expect("nothing panics while it holds the lock")
    }
}

/// Refuses a transaction that DynamoDB would refuse, before it is sent.
pub fn check_transaction(actions: &[TransactWriteItem]) -> Result<(), StoreError> {
    if actions.len() > MAX_ACTIONS {
        let problem = format!(
            "the transaction has {} actions, and DynamoDB takes {MAX_ACTIONS}: publish fewer messages in it",
            actions.len()
        );
        return Err(refused(OPERATION, problem));
    }
    let put = |action: &TransactWriteItem| action.put().map_or(0, |put| size(put.item()));
    let bytes: usize = actions.iter().map(put).sum();
    match bytes > MAX_BYTES {
        true => Err(refused(
            OPERATION,
            format!(
                "the transaction has {bytes} bytes, and DynamoDB takes {MAX_BYTES}: publish fewer messages in it"
            ),
        )),
        false => Ok(()),
    }
}

/// An id that no other message has.
fn new_id() -> String {
    // A UUID of version 4: what Brighter's own messages have.
    let bits = rand::random::<u128>() & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_process_are_made_one_after_the_other() {
        let publisher = Publisher::default();
        let first = publisher.times(1_000_000);
        let second = publisher.times(1);
        assert!(second.0 >= first.0 + 1_000_000, "{first:?} {second:?}");
        assert!(publisher.times(3) > second);
    }

    #[test]
    fn ids_are_uuids() {
        let id = new_id();
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert!("89ab".contains(&id[19..20]) && id != new_id());
    }
}
