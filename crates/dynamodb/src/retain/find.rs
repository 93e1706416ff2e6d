//! Finds messages that were delivered long ago: shard by shard, the oldest first.
//!
//! What is kept is passed over by the index. Which shards there are, nobody says: a scan finds that out, once from the
//! beginning to the end, and from then on a page at a time, for shards that are new.

use super::{Delivered, MOST, MOST_BYTES, OPERATION};
use crate::{
    DynamoDb,
    item::{
        Item, decode, get_number, get_text,
        name::{DELIVERY_TIME, MESSAGE_ID, TOPIC_SHARD},
        number, text,
    },
    ticks::Ticks,
};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use tidegate_core::{
    StoreError,
    outbox::{Origin, Position},
};

/// Messages that are fetched at a time.
const FETCHED: usize = 100;

/// Messages of one set.
#[derive(Default)]
pub(super) struct Harvest {
    pub messages: Vec<Delivered>,
    bytes: usize,
}

impl Harvest {
    fn is_full(&self) -> bool {
        self.messages.len() >= MOST || self.bytes >= MOST_BYTES
    }
}

impl DynamoDb {
    /// Messages that were delivered before a time, up to a set of them.
    pub(super) async fn find_delivered(&self, before: Ticks) -> Result<Harvest, StoreError> {
        let mut harvest = Harvest::default();
        let round = self.sealed_sets().shards.round();
        for shard in round {
            self.search_shard(&shard, before, &mut harvest).await?;
            if harvest.is_full() {
                return Ok(harvest);
            }
        }
        loop {
            let was_complete = self.sealed_sets().shards.is_complete;
            for shard in self.search_table(before, &mut harvest).await? {
                if !harvest.is_full() {
                    self.search_shard(&shard, before, &mut harvest).await?;
                }
            }
            let is_over = self.sealed_sets().shards.from.is_none();
            if harvest.is_full() || was_complete || is_over {
                return Ok(harvest);
            }
        }
    }

    async fn search_shard(
        &self,
        shard: &str,
        before: Ticks,
        harvest: &mut Harvest,
    ) -> Result<(), StoreError> {
        let (index, mut from) = (self.delivered_index().await?, None);
        loop {
            let request = self
                .client
                .sdk
                .query()
                .table_name(&self.address().table)
                .index_name(&index)
                .key_condition_expression("#shard = :shard AND #delivered <= :before")
                .projection_expression("#id")
                .expression_attribute_names("#shard", TOPIC_SHARD)
                .expression_attribute_names("#delivered", DELIVERY_TIME)
                .expression_attribute_names("#id", MESSAGE_ID)
                .expression_attribute_values(":shard", text(shard))
                .expression_attribute_values(":before", number(before.0))
                .limit(MOST as i32)
                .set_exclusive_start_key(from)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = self.client.call(OPERATION, || request.clone().send()).await;
            let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
            self.fetch(answer.items(), before, harvest).await?;
            if harvest.is_full() {
                self.sealed_sets().shards.stop_at(shard);
                return Ok(());
            }
            from = answer.last_evaluated_key().filter(|key| !key.is_empty()).cloned();
            if from.is_none() {
                return Ok(());
            }
        }
    }

    /// Goes on with the scan by a page. Returns shards that are new.
    async fn search_table(
        &self,
        before: Ticks,
        harvest: &mut Harvest,
    ) -> Result<Vec<String>, StoreError> {
        let from = self.sealed_sets().shards.from.clone();
        let request = self
            .client
            .sdk
            .scan()
            .table_name(&self.address().table)
            .index_name(&self.address().indexes.delivered_all)
            .projection_expression("#id, #shard, #delivered")
            .expression_attribute_names("#id", MESSAGE_ID)
            .expression_attribute_names("#shard", TOPIC_SHARD)
            .expression_attribute_names("#delivered", DELIVERY_TIME)
            .set_exclusive_start_key(from)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.client.call(OPERATION, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
        let is_old =
            |item: &&Item| get_number(item, DELIVERY_TIME).is_some_and(|at| Ticks(at) <= before);
        // What has no shard is not in the index of a shard.
        let loose = answer.items().iter().filter(|item| get_text(item, TOPIC_SHARD).is_none());
        let loose: Vec<Item> = loose.filter(is_old).cloned().collect();
        self.fetch(&loose, before, harvest).await?;
        let mut sets = self.sealed_sets();
        let shards = answer.items().iter().filter_map(|item| get_text(item, TOPIC_SHARD));
        let new: Vec<String> =
            shards.filter(|shard| sets.shards.add(shard)).map(str::to_owned).collect();
        let next = answer.last_evaluated_key().filter(|key| !key.is_empty()).cloned();
        // A page with more than a set is read once more: what is left of it may be in no shard.
        if !harvest.is_full() {
            sets.shards.scanned(next);
        }
        Ok(new)
    }

    /// Reads messages as they are now: an index may show what was removed or replayed a moment ago, and need not have
    /// all of them.
    async fn fetch(
        &self,
        found: &[Item],
        before: Ticks,
        harvest: &mut Harvest,
    ) -> Result<(), StoreError> {
        let ids: Vec<String> =
            found.iter().filter_map(|it| get_text(it, MESSAGE_ID)).map(str::to_owned).collect();
        for ids in ids.chunks(FETCHED) {
            if harvest.is_full() {
                return Ok(());
            }
            let mut items = self.client.get_all(OPERATION, ids, None).await?;
            for item in ids.iter().filter_map(|id| items.remove(id)) {
                let at = get_number(&item, DELIVERY_TIME).map(Ticks).filter(|at| *at <= before);
                let found = decode(&item).filter(|it| it.is_sent() && it.created <= before);
                let (Some(at), Some(found)) = (at, found) else { continue };
                harvest.bytes += found.bytes;
                let message = found.message(Position::default(), Origin::Lane { due_in: None });
                harvest.messages.push(Delivered { message, at });
            }
        }
        Ok(())
    }
}
