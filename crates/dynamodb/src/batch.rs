//! Many items in one request. What DynamoDB leaves unprocessed is sent again, after a pause that grows.

use crate::{
    client::{Client, jittered},
    error::throttled,
    item::{self, Item, get_text, name::MESSAGE_ID, text},
};
use aws_sdk_dynamodb::{
    operation::{batch_get_item::BatchGetItemOutput, batch_write_item::BatchWriteItemOutput},
    types::{KeysAndAttributes, PutRequest, ReturnConsumedCapacity, WriteRequest},
};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};
use tidegate_core::{Class, Kind, StoreError, limits::STORE_DEADLINE};
use tokio::time::{Instant, sleep};

/// DynamoDB's own bounds on one request.
const MOST_WRITTEN: usize = 25;
const MOST_READ: usize = 100;
/// A request is at most 16 MB; with this it stays below it, whatever is around the items.
const MOST_BYTES: usize = 12 << 20;

/// Requests that are on their way at a time.
const AT_ONCE: usize = 8;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Messages that are not there.
#[derive(Debug, thiserror::Error)]
#[error("{} of the messages are not in the table: {}", .0.len(), .0.join(", "))]
pub struct Missing(pub Vec<String>);

impl Client {
    /// Puts items into the table of messages. On an error some of them may be there.
    pub(crate) async fn put_all(
        &self,
        operation: &'static str,
        items: Vec<Item>,
    ) -> Result<(), StoreError> {
        let put = |item| {
            let size = item::size(&item);
            let request = PutRequest::builder().set_item(Some(item)).build();
            request.map(|put| (WriteRequest::builder().put_request(put).build(), size))
        };
        self.write_all(operation, items.into_iter().map(put)).await
    }

    async fn write_all<E: std::fmt::Display>(
        &self,
        operation: &'static str,
        requests: impl Iterator<Item = Result<(WriteRequest, usize), E>>,
    ) -> Result<(), StoreError> {
        let mut batches: Vec<Vec<WriteRequest>> = Vec::new();
        let mut bytes = 0;
        for request in requests {
            let (request, size) = request.map_err(|error| unbuilt(operation, error))?;
            bytes += size;
            match batches.last_mut() {
                Some(batch) if batch.len() < MOST_WRITTEN && bytes <= MOST_BYTES => {
                    batch.push(request)
                }
                _ => {
                    batches.push(vec![request]);
                    bytes = size;
                }
            }
        }
        let written = stream::iter(batches)
            .map(|batch| self.write_batch(operation, batch))
            .buffer_unordered(AT_ONCE);
        written.try_collect().await
    }

    async fn write_batch(
        &self,
        operation: &'static str,
        mut batch: Vec<WriteRequest>,
    ) -> Result<(), StoreError> {
        let mut pauses = Pauses::new(operation);
        loop {
            let sent = batch.len();
            let request = self
                .sdk
                .batch_write_item()
                .request_items(&self.address.table, batch)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let left = |it: &BatchWriteItemOutput| {
                it.unprocessed_items()
                    .and_then(|left| left.get(&self.address.table))
                    .map_or(0, Vec::len)
            };
            let is_throttled = |it: &BatchWriteItemOutput| is_mostly_left(left(it), sent);
            let answer = self.call_partly(operation, || request.clone().send(), is_throttled).await;
            let answer = answer.map_err(|failure| failure.into_error(operation))?;
            let mut left = answer.unprocessed_items.unwrap_or_default();
            batch = left.remove(&self.address.table).unwrap_or_default();
            if batch.is_empty() {
                return Ok(());
            }
            pauses.pause().await?;
        }
    }

    /// Reads messages as they are now, not as an index shows them. Those that are not there are left out.
    pub(crate) async fn get_all(
        &self,
        operation: &'static str,
        ids: &[String],
        attributes: Option<&[&str]>,
    ) -> Result<HashMap<String, Item>, StoreError> {
        // DynamoDB refuses a request that names one twice.
        let distinct: BTreeSet<&String> = ids.iter().collect();
        let ids: Vec<String> = distinct.into_iter().cloned().collect();
        let batches: Vec<Vec<String>> = ids.chunks(MOST_READ).map(<[String]>::to_vec).collect();
        let read = stream::iter(batches)
            .map(|batch| self.get_batch(operation, batch, attributes))
            .buffer_unordered(AT_ONCE);
        let found: Vec<Vec<Item>> = read.try_collect().await?;
        let by_id = |item: Item| Some((get_text(&item, MESSAGE_ID)?.to_owned(), item));
        Ok(found.into_iter().flatten().filter_map(by_id).collect())
    }

    async fn get_batch(
        &self,
        operation: &'static str,
        ids: Vec<String>,
        attributes: Option<&[&str]>,
    ) -> Result<Vec<Item>, StoreError> {
        let names = |name: &&str| (format!("#{name}"), (*name).to_owned());
        let key = |id: &String| HashMap::from([(MESSAGE_ID.to_owned(), text(id))]);
        let mut keys: Vec<Item> = ids.iter().map(key).collect();
        let (mut found, mut pauses) = (Vec::new(), Pauses::new(operation));
        loop {
            let sent = keys.len();
            let mut wanted =
                KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true);
            if let Some(attributes) = attributes {
                let expression: Vec<String> =
                    attributes.iter().map(|it| format!("#{it}")).collect();
                wanted = wanted
                    .projection_expression(expression.join(","))
                    .set_expression_attribute_names(Some(attributes.iter().map(names).collect()));
            }
            let wanted = wanted.build().map_err(|error| unbuilt(operation, error))?;
            let request = self
                .sdk
                .batch_get_item()
                .request_items(&self.address.table, wanted)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let left = |it: &BatchGetItemOutput| {
                it.unprocessed_keys()
                    .and_then(|it| it.get(&self.address.table))
                    .map_or(0, |it| it.keys().len())
            };
            let is_throttled =
                |it: &BatchGetItemOutput| is_mostly_left(left(it), sent) && !self.is_full(it);
            let answer = self.call_partly(operation, || request.clone().send(), is_throttled).await;
            let answer = answer.map_err(|failure| failure.into_error(operation))?;
            let is_full = self.is_full(&answer);
            let mut responses = answer.responses.unwrap_or_default();
            found.extend(responses.remove(&self.address.table).unwrap_or_default());
            let mut left = answer.unprocessed_keys.unwrap_or_default();
            keys = left.remove(&self.address.table).map(|left| left.keys).unwrap_or_default();
            if keys.is_empty() {
                return Ok(found);
            }
            if !is_full {
                pauses.pause().await?;
            }
        }
    }

    /// Whether the answer has as much as one may have: what is left then was not throttled.
    fn is_full(&self, answer: &BatchGetItemOutput) -> bool {
        let items = answer.responses().and_then(|found| found.get(&self.address.table));
        items.into_iter().flatten().map(item::size).sum::<usize>() >= MOST_BYTES
    }

    /// Reads messages, all or none.
    pub(crate) async fn get_every(
        &self,
        operation: &'static str,
        ids: &[String],
    ) -> Result<HashMap<String, Item>, StoreError> {
        let found = self.get_all(operation, ids, None).await?;
        let missing: Vec<String> =
            ids.iter().filter(|id| !found.contains_key(*id)).cloned().collect();
        if missing.is_empty() {
            return Ok(found);
        }
        let missing = Missing(missing);
        let error =
            StoreError::new(Kind::NotFound, Class::Permanent, operation, missing.to_string());
        Err(error.because(missing))
    }
}

/// Whether so much of a request was left unprocessed that it counts as throttled. If most of it was done, it is enough
/// to wait with the rest.
fn is_mostly_left(left: usize, sent: usize) -> bool {
    left * 2 > sent
}

fn unbuilt(operation: &'static str, error: impl std::fmt::Display) -> StoreError {
    StoreError::new(
        Kind::Other,
        Class::Permanent,
        operation,
        format!("no request can be made: {error}"),
    )
}

/// Between requests of which something was left unprocessed.
struct Pauses {
    operation: &'static str,
    next: Duration,
    until: Instant,
}

impl Pauses {
    fn new(operation: &'static str) -> Self {
        Self { operation, next: FIRST_PAUSE, until: Instant::now() + STORE_DEADLINE }
    }

    async fn pause(&mut self) -> Result<(), StoreError> {
        if Instant::now() + self.next > self.until {
            return Err(throttled(self.operation, "items were left unprocessed again and again"));
        }
        sleep(jittered(self.next)).await;
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
