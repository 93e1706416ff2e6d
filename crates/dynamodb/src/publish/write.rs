//! Writes messages that have an id already. Whatever is sent again, a message that is there is left as it is: it may
//! have been delivered meanwhile.
//!
//! The time of a message is that at which it is sent, not that at which `publish` was called: messages that were held
//! back by throttles for longer than `min_age` would be read at once, in whatever order an index shows them.

use super::{MAX_BYTES, OPERATION, Publisher, waves::parts};
use crate::{
    DynamoDb, MAX_ACTIONS,
    batch::{AT_ONCE, MOST_WRITTEN, Pauses, is_mostly_left},
    client::Client,
    error::Failure,
    item::{Item, name::MESSAGE_ID, size, stamp},
    settle::unbuilt,
    ticks::Ticks,
};
use aws_sdk_dynamodb::{
    error::{BuildError, SdkError},
    operation::batch_write_item::BatchWriteItemOutput,
    types::{Put, PutRequest, ReturnConsumedCapacity, TransactWriteItem, WriteRequest},
};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tidegate_core::{Class, StoreError};

/// There is no such message yet.
const IS_NEW: &str = "attribute_not_exists(#id)";

/// A message that is to be written.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub item: Item,
    pub delay: Option<Duration>,
}

impl Draft {
    fn made(&self, created: Ticks) -> Item {
        let mut item = self.item.clone();
        stamp(&mut item, created, self.delay);
        item
    }
}

impl Publisher {
    /// The items of messages that are made now, one after the other.
    pub(super) fn make(&self, drafts: &[Draft]) -> Vec<Item> {
        let first = self.times(drafts.len());
        drafts.iter().zip(first.0..).map(|(draft, created)| draft.made(Ticks(created))).collect()
    }
}

impl DynamoDb {
    /// Writes messages. Up to 100 of 4 MB are one transaction. Of more, some may be there after an error, but of no
    /// key a later one without those before it.
    pub(super) async fn write(&self, drafts: &[Draft]) -> Result<(), StoreError> {
        let sizes: Vec<usize> = drafts.iter().map(|draft| size(&draft.item)).collect();
        if drafts.len() <= MAX_ACTIONS && sizes.iter().sum::<usize>() <= MAX_BYTES {
            return self.write_transaction(drafts).await;
        }
        let parts = parts(drafts.iter().map(|draft| &draft.item));
        let chosen = |numbers: &[usize]| -> Vec<Draft> {
            numbers.iter().map(|number| drafts[*number].clone()).collect()
        };
        for wave in &parts.waves {
            let batches = wave.chunks(MOST_WRITTEN).map(chosen);
            let written = stream::iter(batches).map(|batch| self.write_batch(batch));
            written.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        }
        for numbers in by_bytes(&parts.rest, &sizes) {
            self.write_transaction(&chosen(numbers)).await?;
        }
        Ok(())
    }

    /// Writes messages of which no two have a key in common.
    async fn write_batch(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        let items = self.publisher.make(&drafts);
        let put = |item| PutRequest::builder().set_item(Some(item)).build();
        let write = |item| put(item).map(|put| WriteRequest::builder().put_request(put).build());
        let mut batch: Vec<WriteRequest> =
            items.into_iter().map(write).collect::<Result<_, _>>().map_err(unbuilt)?;
        let table = &self.address().table;
        let mut pauses = Pauses::new(OPERATION);
        loop {
            let request = self.client.sdk.batch_write_item();
            let request = request
                .request_items(table, batch.clone())
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let sent = batch.len();
            let is_throttled = |answer: &BatchWriteItemOutput| {
                let left = answer.unprocessed_items().and_then(|left| left.get(table));
                is_mostly_left(left.map_or(0, Vec::len), sent)
            };
            let answer = self.client.call_once(OPERATION, || request.clone().send(), is_throttled);
            match answer.await {
                Ok(answer) => {
                    let mut left = answer.unprocessed_items.unwrap_or_default();
                    batch = left.remove(table).unwrap_or_default();
                }
                // It may have been carried out, and a batch overwrites what is there: now each by itself, if it is
                // not there.
                Err(Failure::Store(error)) if error.class() == Class::Unavailable => {
                    let items = batch.into_iter().filter_map(|it| Some(it.put_request?.item));
                    let put = stream::iter(items).map(|item| self.client.put_new(item));
                    return put.buffer_unordered(AT_ONCE).try_collect().await;
                }
                Err(failure) => return Err(failure.into_error(OPERATION)),
            }
            if batch.is_empty() {
                return Ok(());
            }
            pauses.pause().await?;
        }
    }

    /// Writes messages in order, all or none.
    async fn write_transaction(&self, drafts: &[Draft]) -> Result<(), StoreError> {
        let copies = AtomicU32::new(0);
        let send = || async {
            copies.fetch_add(1, Relaxed);
            let items = self.publisher.make(drafts).into_iter();
            let actions = items.map(|item| put_action(&self.address().table, item));
            let actions = actions.collect::<Result<Vec<_>, _>>();
            let request = self.client.sdk.transact_write_items();
            request
                .set_transact_items(Some(actions.map_err(SdkError::construction_failure)?))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
        };
        let mut pauses = Pauses::new(OPERATION);
        loop {
            let failure = match self.client.call_transaction(OPERATION, send).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            let Failure::Cancelled(codes) = &failure else {
                return Err(failure.into_error(OPERATION));
            };
            // Their ids are new: what is there was written by an earlier copy, whose answer was lost.
            if copies.load(Relaxed) > 1 && codes.iter().all(|code| code == IS_THERE) {
                return Ok(());
            }
            // An earlier copy is being carried out, perhaps.
            if !codes.iter().any(|code| code == CONFLICT) {
                return Err(failure.into_error(OPERATION));
            }
            pauses.pause().await?;
        }
    }
}

/// What DynamoDB says of an action whose condition does not hold.
pub(super) const IS_THERE: &str = "ConditionalCheckFailed";
/// What it says of one whose item another request changes at the same time.
const CONFLICT: &str = "TransactionConflict";

impl Client {
    /// Puts a message that is not there yet, and leaves it alone otherwise.
    async fn put_new(&self, item: Item) -> Result<(), StoreError> {
        let request = self
            .sdk
            .put_item()
            .table_name(&self.address.table)
            .set_item(Some(item))
            .condition_expression(IS_NEW)
            .expression_attribute_names("#id", MESSAGE_ID)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        match self.call(OPERATION, || request.clone().send()).await {
            Ok(_) | Err(Failure::Condition) => Ok(()),
            Err(failure) => Err(failure.into_error(OPERATION)),
        }
    }
}

/// The action that publishes a message, unless it was published.
pub(super) fn put_action(table: &str, item: Item) -> Result<TransactWriteItem, BuildError> {
    let put = Put::builder()
        .table_name(table)
        .set_item(Some(item))
        .condition_expression(IS_NEW)
        .expression_attribute_names("#id", MESSAGE_ID)
        .build()?;
    Ok(TransactWriteItem::builder().put(put).build())
}

/// Cuts messages into transactions.
fn by_bytes<'a>(numbers: &'a [usize], sizes: &[usize]) -> Vec<&'a [usize]> {
    let (mut cuts, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (at, number) in numbers.iter().enumerate() {
        if at - begin == MAX_ACTIONS || bytes + sizes[*number] > MAX_BYTES {
            cuts.push(&numbers[begin..at]);
            (begin, bytes) = (at, 0);
        }
        bytes += sizes[*number];
    }
    cuts.push(&numbers[begin..]);
    cuts.retain(|cut| !cut.is_empty());
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn transactions_have_all_messages_in_order_and_fit(
            sizes in prop::collection::vec(1..409_600_usize, 0..400),
            small in any::<bool>(),
        ) {
            let sizes: Vec<usize> = sizes.iter().map(|it| if small { it % 2_000 } else { *it }).collect();
            let numbers: Vec<usize> = (0..sizes.len()).collect();
            let cuts = by_bytes(&numbers, &sizes);
            prop_assert_eq!(cuts.concat(), (0..sizes.len()).collect::<Vec<_>>());
            for cut in cuts {
                let bytes: usize = cut.iter().map(|number| sizes[*number]).sum();
                prop_assert!(!cut.is_empty() && cut.len() <= MAX_ACTIONS && bytes <= MAX_BYTES);
            }
        }
    }
}
