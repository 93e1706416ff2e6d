//! Many items in one request. What DynamoDB leaves unprocessed is sent again, after a pause that grows.

use crate::{
    client::{Client, jittered},
    error::throttled,
    item::{Item, get_text, name::MESSAGE_ID, text},
};
use aws_sdk_dynamodb::types::{
    DeleteRequest, KeysAndAttributes, ReturnConsumedCapacity, WriteRequest,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{collections::HashMap, time::Duration};
use tidegate_core::{Class, Kind, StoreError, limits::STORE_DEADLINE};
use tokio::time::{Instant, sleep};

/// DynamoDB's own bounds on one request.
pub(crate) const MOST_WRITTEN: usize = 25;
const MOST_READ: usize = 100;
/// A request is at most 16 MB; with this it stays below it, whatever is around the items.
const MOST_BYTES: usize = 12 << 20;

/// Requests that are on their way at a time.
pub(crate) const AT_ONCE: usize = 8;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Messages that are not there.
#[derive(Debug, thiserror::Error)]
#[error("{} of the messages are not in the table: {}", .0.len(), .0.join(", "))]
pub struct Missing(pub Vec<String>);

impl Client {
    /// Removes messages from the table. On an error some of them may be gone.
    pub(crate) async fn delete_all(
        &self,
        operation: &'static str,
        ids: &[String],
    ) -> Result<(), StoreError> {
        let delete = |id: &String| {
            let request = DeleteRequest::builder().key(MESSAGE_ID, text(id)).build();
            request.map(|it| (WriteRequest::builder().delete_request(it).build(), id.len()))
        };
        self.write_all(operation, ids.iter().map(delete)).await
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
            let request = self
                .sdk
                .batch_write_item()
                .request_items(&self.address.table, batch)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = self.call(operation, || request.clone().send()).await;
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
        let batches = ids.chunks(MOST_READ).map(<[String]>::to_vec);
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
        keys.dedup();
        let (mut found, mut pauses) = (Vec::new(), Pauses::new(operation));
        loop {
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
            let answer = self.call(operation, || request.clone().send()).await;
            let answer = answer.map_err(|failure| failure.into_error(operation))?;
            let mut responses = answer.responses.unwrap_or_default();
            found.extend(responses.remove(&self.address.table).unwrap_or_default());
            let mut left = answer.unprocessed_keys.unwrap_or_default();
            keys = left.remove(&self.address.table).map(|left| left.keys).unwrap_or_default();
            if keys.is_empty() {
                return Ok(found);
            }
            pauses.pause().await?;
        }
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

fn unbuilt(operation: &'static str, error: impl std::fmt::Display) -> StoreError {
    StoreError::new(
        Kind::Other,
        Class::Permanent,
        operation,
        format!("no request can be made: {error}"),
    )
}

/// Between requests of which something was left unprocessed.
pub(crate) struct Pauses {
    operation: &'static str,
    next: Duration,
    until: Instant,
}

impl Pauses {
    pub fn new(operation: &'static str) -> Self {
        Self { operation, next: FIRST_PAUSE, until: Instant::now() + STORE_DEADLINE }
    }

    pub async fn pause(&mut self) -> Result<(), StoreError> {
        if Instant::now() + self.next > self.until {
            return Err(throttled(self.operation, "items were left unprocessed again and again"));
        }
        sleep(jittered(self.next)).await;
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
