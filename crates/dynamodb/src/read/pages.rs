//! One page of an index.

use super::Seen;
use crate::{
    client::Client,
    item::{
        Item, decode,
        name::{MESSAGE_ID, NOT_BEFORE, OUTSTANDING, PARTITION_KEY, TOPIC, TOPIC_SHARD},
        number, text,
    },
    ticks::Ticks,
};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use tidegate_core::StoreError;

const OPERATION: &str = "claim messages";

/// Messages in the order in which the index has them, and from where the next page begins.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub seen: Vec<Seen>,
    pub next: Option<Item>,
}

/// A part of a scan.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub number: u32,
    pub of: u32,
    pub from: Option<Item>,
    pub limit: u32,
    /// Whether only what names messages is wanted, and what says where they belong.
    pub names_only: bool,
}

impl Client {
    pub(super) async fn scan_outstanding(&self, segment: Segment) -> Result<Page, StoreError> {
        let mut request = self
            .sdk
            .scan()
            .table_name(&self.address.table)
            .index_name(&self.address.indexes.outstanding_all)
            .limit(segment.limit as i32)
            .set_exclusive_start_key(segment.from)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        if segment.of > 1 {
            request = request.segment(segment.number as i32).total_segments(segment.of as i32);
        }
        if segment.names_only {
            request = request
                .projection_expression("#id, #outstanding, #topic, #shard, #key, #due")
                .expression_attribute_names("#id", MESSAGE_ID)
                .expression_attribute_names("#outstanding", OUTSTANDING)
                .expression_attribute_names("#topic", TOPIC)
                .expression_attribute_names("#shard", TOPIC_SHARD)
                .expression_attribute_names("#key", PARTITION_KEY)
                .expression_attribute_names("#due", NOT_BEFORE);
        }
        let answer = self.call(OPERATION, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
        Ok(page(answer.items(), answer.last_evaluated_key(), !segment.names_only))
    }

    /// The oldest messages of a shard, none younger than `to`.
    pub(super) async fn query_outstanding(
        &self,
        shard: &str,
        from: Option<Item>,
        to: Ticks,
        limit: u32,
    ) -> Result<Page, StoreError> {
        let request = self
            .sdk
            .query()
            .table_name(&self.address.table)
            .index_name(&self.address.indexes.outstanding)
            .key_condition_expression("#shard = :shard AND #outstanding <= :to")
            .expression_attribute_names("#shard", TOPIC_SHARD)
            .expression_attribute_names("#outstanding", OUTSTANDING)
            .expression_attribute_values(":shard", text(shard))
            .expression_attribute_values(":to", number(to.0))
            .scan_index_forward(true)
            .limit(limit as i32)
            .set_exclusive_start_key(from)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.call(OPERATION, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
        Ok(page(answer.items(), answer.last_evaluated_key(), true))
    }
}

fn page(items: &[Item], next: Option<&Item>, is_whole: bool) -> Page {
    let seen = |item: &Item| Seen::new(decode(item)?, is_whole);
    let seen = items.iter().filter_map(seen).collect();
    Page { seen, next: next.filter(|next| !next.is_empty()).cloned() }
}
