//! Marks what is done, and writes what was set aside.
//!
//! A mark is one update of one item, under the condition that the message is still outstanding as it was read. It is
//! not fenced: a relay that surely has its lanes, because it said a short time ago that it lives, marks without asking,
//! and any other looks at the leases first. What was set aside is written in transactions that also check the lease,
//! of each lane in its order: whatever was written when a relay ends in between is the beginning of what it wanted to
//! write.

mod actions;
mod sizes;
mod units;

use crate::{
    DynamoDb,
    error::Failure,
    item::name::MESSAGE_ID,
    item::{Item, number, text},
    read::parse,
    ticks::Ticks,
};
use actions::{Delivered, Room, delivered};
pub(crate) use actions::{delete_message, delete_record, move_aside, put_record, unbuilt};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures_util::{StreamExt, TryStreamExt, stream};
pub(crate) use sizes::{LARGE, Sizes};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};
use tidegate_core::{
    StoreError,
    outbox::{
        Lane, LaneLease, Settled,
        by_state::{Marks, Row},
    },
};
pub(crate) use units::MOST_BYTES;

pub(crate) const OPERATION: &str = "settle messages";

/// Lanes that are marked at a time; the pacer may allow fewer requests.
const AT_ONCE: usize = 64;

impl DynamoDb {
    pub(crate) async fn settle(&self, marks: Marks) -> Result<Settled, StoreError> {
        let at = Ticks::now();
        let late = self.late_lanes(&marks.lanes).await?;
        let mut fresh: BTreeMap<Lane, Vec<Row>> = BTreeMap::new();
        {
            // A settlement is sent again as a whole if a part of it failed.
            let finder = self.finder();
            let is_fresh =
                |lane: &Lane, row: &Row| !late.contains(lane) && !finder.recent.contains(row);
            for (lane, row) in marks.done.iter().filter(|(lane, row)| is_fresh(lane, row)) {
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
            return Ok(Settled { late: late.into_iter().collect(), ..Settled::default() });
        }
        self.write_aside(&marks, late, at).await
    }

    /// Those of some lanes that are not leased any more. It is asked only if that is in doubt.
    async fn late_lanes(&self, lanes: &[LaneLease]) -> Result<BTreeSet<Lane>, StoreError> {
        let known = self.tenure().late(lanes, Instant::now());
        match known {
            Some(late) => Ok(late.into_iter().collect()),
            None => self.lost_lanes(lanes).await,
        }
    }

    /// Those of some lanes that are not leased any more.
    async fn lost_lanes(&self, lanes: &[LaneLease]) -> Result<BTreeSet<Lane>, StoreError> {
        let leases = self.client.leases(OPERATION).await?;
        let is_held = |lease: &LaneLease| {
            leases.lanes.get(&lease.lane).is_some_and(|it| it.fence == lease.fence)
        };
        Ok(lanes.iter().filter(|lease| !is_held(lease)).map(|lease| lease.lane).collect())
    }

    /// One message is delivered. If it is not outstanding any more, somebody else has marked or removed it.
    async fn mark_delivered(&self, row: Row, at: Ticks) -> Result<(), StoreError> {
        let Some((outstanding, id)) = parse(&row) else { return Ok(()) };
        let mut failure = Failure::Condition;
        for room in Room::ALL {
            match self.try_to_mark(id, outstanding, at, room).await {
                Ok(()) | Err(Failure::Condition) => {
                    self.sizes().remove(&row);
                    self.finder().marked(std::iter::once(row), Instant::now());
                    return Ok(());
                }
                // There is no room in the item.
                Err(Failure::Invalid(told)) => failure = Failure::Invalid(told),
                Err(other) => return Err(other.into_error(OPERATION)),
            }
        }
        Err(failure.into_error(OPERATION))
    }

    async fn try_to_mark(
        &self,
        id: &str,
        outstanding: Ticks,
        at: Ticks,
        room: Room,
    ) -> Result<(), Failure> {
        // A message that was set aside and made outstanding again by somebody else may still say where.
        let Delivered { update, names, mut values } =
            delivered(at, self.address().ttl, room, "#outstanding, #aside");
        values.insert(":outstanding".to_owned(), number(outstanding.0));
        let request = self
            .client
            .sdk
            .update_item()
            .table_name(&self.address().table)
            .key(MESSAGE_ID, text(id))
            .update_expression(update)
            .condition_expression("#outstanding = :outstanding")
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        self.client.call(OPERATION, || request.clone().send()).await.map(|_| ())
    }
}

/// The key of a message.
fn key(id: &str) -> Item {
    Item::from([(MESSAGE_ID.to_owned(), text(id))])
}
