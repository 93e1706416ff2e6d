//! Reads what waits in lanes that were just leased, for a part of the lease at a time.

use super::{
    place::{PARTS, Place},
    record::{Part, Record},
};
use crate::{
    client::Client,
    item::{Item, text},
    tables::{NAME, SCOPE},
};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use std::{collections::BTreeSet, time::Duration};
use tidegate_core::{
    StoreError,
    outbox::{Lane, LaneLease},
};
use tokio::time::Instant;

/// Lanes that were leased, while what waits there is read.
pub(crate) struct Loading {
    pub lanes: Vec<LaneLease>,
    pub records: Vec<Record>,
    /// What is still to be read: scopes, the first from where on.
    scopes: Vec<u16>,
    from: Option<Item>,
}

impl Loading {
    pub fn new(lanes: Vec<LaneLease>) -> Self {
        let scopes: BTreeSet<u16> = lanes.iter().map(|lease| lease.lane.0 % PARTS).collect();
        Self { lanes, records: Vec::new(), scopes: scopes.into_iter().collect(), from: None }
    }

    /// Reads on, for so long at most but at least one page. Returns whether that was all.
    pub async fn step(
        &mut self,
        client: &Client,
        operation: &'static str,
        most: Duration,
    ) -> Result<bool, StoreError> {
        let begun = Instant::now();
        let wanted: BTreeSet<Lane> = self.lanes.iter().map(|lease| lease.lane).collect();
        while let Some(part) = self.scopes.first().copied() {
            let scope = Part::Waiting.scope(part);
            let (records, next) =
                client.records(operation, &scope, self.from.take(), None, true).await?;
            self.records.extend(records.into_iter().filter(|it| wanted.contains(&it.row.lane)));
            self.from = next;
            if self.from.is_none() {
                self.scopes.remove(0);
            }
            if begun.elapsed() > most && !self.scopes.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Client {
    /// One page of the records of a scope, and from where the next begins.
    pub(crate) async fn records(
        &self,
        operation: &'static str,
        scope: &str,
        from: Option<Item>,
        limit: Option<usize>,
        consistent: bool,
    ) -> Result<(Vec<Record>, Option<Item>), StoreError> {
        let request = self
            .sdk
            .query()
            .table_name(&self.address.side_table)
            .key_condition_expression("#scope = :scope")
            .expression_attribute_names("#scope", SCOPE)
            .expression_attribute_values(":scope", text(scope))
            .set_exclusive_start_key(from)
            .set_limit(limit.map(|limit| limit.clamp(1, 10_000) as i32))
            .consistent_read(consistent)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.call(operation, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(operation))?;
        let read = |item: &Item| {
            let record = Record::read(item);
            if record.is_none() {
                let name = item.get(NAME).and_then(|name| name.as_s().ok());
                tracing::warn!("the record {name:?} in {} cannot be read", self.address.side_table);
            }
            record
        };
        let records = answer.items().iter().filter_map(read).collect();
        Ok((records, answer.last_evaluated_key().cloned()))
    }

    /// Removes a record, whether it is there or not.
    pub(crate) async fn delete_record(
        &self,
        operation: &'static str,
        place: Place,
    ) -> Result<(), StoreError> {
        let request = self
            .sdk
            .delete_item()
            .table_name(&self.address.side_table)
            .set_key(Some(place.key()))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.call(operation, || request.clone().send()).await;
        answer.map(|_| ()).map_err(|failure| failure.into_error(operation))
    }
}
