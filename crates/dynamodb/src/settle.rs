//! Marks what is done, and writes what was set aside.
//!
//! A mark is one update of one item, under the condition that the message is still outstanding as it was read: it
//! states a fact, whoever has the lane by now. What was set aside is written in transactions that also check the
//! lease, of each lane in its order: whatever was written when a relay ends in between is the beginning of what it
//! wanted to write.

mod actions;
mod units;

use crate::{
    DynamoDb,
    error::Failure,
    item::name::{DELIVERED_AT, DELIVERY_TIME, EXPIRES_AT, MESSAGE_ID, OUTSTANDING},
    item::{Item, number, text},
    read::parse,
    ticks::Ticks,
};
use actions::delivered;
pub(crate) use actions::{delete_message, delete_record, move_aside, put_record, unbuilt};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{collections::BTreeMap, time::Instant};
use tidegate_core::{
    StoreError,
    outbox::{
        Lane, Settled,
        by_state::{Marks, Row},
    },
};

pub(crate) const OPERATION: &str = "settle messages";

/// Lanes that are marked at a time; the pacer may allow fewer requests.
const AT_ONCE: usize = 64;

impl DynamoDb {
    pub(crate) async fn settle(&self, marks: Marks) -> Result<Settled, StoreError> {
        let at = Ticks::now();
        let mut fresh: BTreeMap<Lane, Vec<Row>> = BTreeMap::new();
        {
            // A settlement is sent again as a whole if a part of it failed.
            let finder = self.finder();
            for (lane, row) in marks.done.iter().filter(|(_, row)| !finder.recent.contains(row)) {
                fresh.entry(*lane).or_default().push(row.clone());
            }
        }
        // Of a lane one after the other: if this relay ends in between, what is repeated is the end of each key, and
        // not a message before others that are marked.
        let marked = stream::iter(fresh.into_values()).map(async |rows| {
            for row in rows {
                self.mark_delivered(row, at).await?;
            }
            Ok::<(), StoreError>(())
        });
        marked.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        if marks.aside.is_empty() && marks.aside_done.is_empty() {
            return Ok(Settled::default());
        }
        self.write_aside(&marks, at).await
    }

    /// One message is delivered. If it is not outstanding any more, somebody else has marked or removed it.
    async fn mark_delivered(&self, row: Row, at: Ticks) -> Result<(), StoreError> {
        let Some((outstanding, id)) = parse(&row) else { return Ok(()) };
        let (update, mut values) = delivered(at, self.address().ttl, "#outstanding");
        values.insert(":outstanding".to_owned(), number(outstanding.0));
        let mut request = self
            .client
            .sdk
            .update_item()
            .table_name(&self.address().table)
            .key(MESSAGE_ID, text(id))
            .update_expression(update)
            .condition_expression("#outstanding = :outstanding")
            .expression_attribute_names("#outstanding", OUTSTANDING)
            .expression_attribute_names("#time", DELIVERY_TIME)
            .expression_attribute_names("#at", DELIVERED_AT)
            .set_expression_attribute_values(Some(values))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        if self.address().ttl.is_some() {
            request = request.expression_attribute_names("#expires", EXPIRES_AT);
        }
        match self.client.call(OPERATION, || request.clone().send()).await {
            Ok(_) | Err(Failure::Condition) => {
                self.finder().marked(std::iter::once(row), Instant::now());
                Ok(())
            }
            Err(failure) => Err(failure.into_error(OPERATION)),
        }
    }
}

/// The key of a message.
fn key(id: &str) -> Item {
    Item::from([(MESSAGE_ID.to_owned(), text(id))])
}
