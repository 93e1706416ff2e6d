//! Writes messages: by themselves, or as a part of a caller's own transaction.

mod transaction;
mod waves;
mod write;

pub use transaction::{already_published, check_transaction};

use crate::{
    DynamoDb,
    error::refused,
    item::{Item, Outgoing, encode},
    settle::unbuilt,
    shard,
    ticks::Ticks,
};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::TransactWriteItem;
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
use write::{Draft, put_action};

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
    /// Up to 100 messages of 4 MB are one transaction. More are written in several requests; if that fails, some of
    /// them may be there, and of no key a later one without those before it.
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        if messages.len() > MAX_PUBLISHED {
            return Err(refused(OPERATION, format!("at most {MAX_PUBLISHED} messages at a time")));
        }
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let named: Vec<(String, &NewMessage)> =
            messages.iter().map(|message| (new_id(), message)).collect();
        let drafts = self.drafts(&named)?;
        self.admit().await?;
        self.write(&drafts).await?;
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
    /// else is in it, or not at all. A limit on outstanding messages is not looked at.
    ///
    /// A message goes by the id that it is given here. If there is a message with the id, whatever has become of it,
    /// DynamoDB refuses the transaction: so the same transaction may be sent again when its answer was lost, and
    /// [`already_published`] tells whether it had been carried out.
    pub fn items(
        &self,
        messages: &[(String, &NewMessage)],
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let items = self.publisher.make(&self.drafts(messages)?).into_iter();
        let actions = items.map(|item| put_action(&self.address().table, item));
        let actions = actions.collect::<Result<Vec<_>, _>>().map_err(unbuilt)?;
        check_transaction(&actions)?;
        Ok(actions)
    }

    /// Reads messages by their ids, all or none: an error names those that are missing.
    pub async fn messages(&self, ids: &[String]) -> Result<Vec<Item>, StoreError> {
        let mut found = self.client.get_every("read messages", ids).await?;
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }

    /// Messages as items, but for the time at which they are made.
    fn drafts(&self, messages: &[(String, &NewMessage)]) -> Result<Vec<Draft>, StoreError> {
        let shards = self.address().shards;
        let now = Ticks::now();
        let draft = |(id, message): &(String, &NewMessage)| {
            let shard = match &message.key {
                Some(key) => shard::of_key(key, shards),
                None => rand::random_range(0..shards),
            };
            let item = encode(message, Outgoing { id, created: now, shard })?;
            Ok(Draft { item, delay: message.delay })
        };
        messages.iter().map(draft).collect()
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
