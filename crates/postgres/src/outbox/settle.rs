//! Writes progress and what was set aside, in one statement: a short one if there is only progress.

use super::state;
use crate::{
    decode::{get, millis},
    error::corrupt,
    pool::Pool,
};
use tidegate_core::{
    StoreError,
    outbox::{HeldKey, KeyHash, Lane, SetAside, Settled, Settlement, Waiting},
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "settle messages";

pub(super) async fn settle(pool: &Pool, settlement: &Settlement) -> Result<Settled, StoreError> {
    if settlement.is_empty() {
        return Ok(Settled::default());
    }
    let lanes = Lanes::of(settlement)?;
    if settlement.aside.is_empty() && settlement.done.is_empty() {
        return advance(pool, settlement, &lanes).await;
    }
    let aside = AsideColumns::of(&settlement.aside);
    let done: Vec<i64> = settlement.done.iter().map(|(_, position)| position.0).collect();
    let rows = pool
        .query(
            pool.leased(OPERATION),
            include_str!("../sql/outbox/settle.sql"),
            &[
                (&lanes.lane, Type::INT2_ARRAY),
                (&lanes.fence, Type::INT8_ARRAY),
                (&lanes.cursor, Type::INT8_ARRAY),
                (&lanes.state, Type::TEXT_ARRAY),
                (&aside.lane, Type::INT2_ARRAY),
                (&aside.id, Type::INT8_ARRAY),
                (&aside.topic, Type::TEXT_ARRAY),
                (&aside.key, Type::INT8_ARRAY),
                (&aside.sink, Type::TEXT_ARRAY),
                (&aside.state, Type::TEXT_ARRAY),
                (&aside.attempts, Type::INT4_ARRAY),
                (&aside.reason, Type::TEXT_ARRAY),
                (&aside.then, Type::TEXT_ARRAY),
                (&aside.delay_ms, Type::INT8_ARRAY),
                (&done, Type::INT8_ARRAY),
                (&(settlement.number as i64), Type::INT8),
                (&settlement.epoch.0, Type::TEXT),
            ],
        )
        .await?;
    let row = only(&rows)?;
    Ok(Settled { late: late(settlement, row)?, freed: freed(row)? })
}

async fn advance(
    pool: &Pool,
    settlement: &Settlement,
    lanes: &Lanes,
) -> Result<Settled, StoreError> {
    let rows = pool
        .query(
            pool.leased(OPERATION),
            include_str!("../sql/outbox/advance.sql"),
            &[
                (&settlement.epoch.0, Type::TEXT),
                (&lanes.lane, Type::INT2_ARRAY),
                (&lanes.fence, Type::INT8_ARRAY),
                (&lanes.cursor, Type::INT8_ARRAY),
                (&lanes.state, Type::TEXT_ARRAY),
                (&(settlement.number as i64), Type::INT8),
            ],
        )
        .await?;
    Ok(Settled { late: late(settlement, only(&rows)?)?, freed: Vec::new() })
}

fn only(rows: &[Row]) -> Result<&Row, StoreError> {
    rows.first().ok_or_else(|| corrupt(OPERATION, "the settlement came back empty"))
}

/// The lanes that are somebody else's by now.
fn late(settlement: &Settlement, row: &Row) -> Result<Vec<Lane>, StoreError> {
    let held: Vec<i16> = get(OPERATION, row, "held")?;
    let asked = settlement.lanes.iter().map(|progress| progress.lane);
    Ok(asked.filter(|lane| !held.contains(&(lane.0 as i16))).collect())
}

/// The keys for which nothing that holds them is left.
fn freed(row: &Row) -> Result<Vec<HeldKey>, StoreError> {
    let lanes: Vec<i16> = get(OPERATION, row, "freed_lanes")?;
    let sinks: Vec<String> = get(OPERATION, row, "freed_sinks")?;
    let keys: Vec<i64> = get(OPERATION, row, "freed_keys")?;
    let freed = lanes.into_iter().zip(sinks).zip(keys).map(|((lane, sink), key)| HeldKey {
        lane: Lane(lane.unsigned_abs()),
        sink,
        key: KeyHash(key),
    });
    Ok(freed.collect())
}

#[derive(Default)]
struct Lanes {
    lane: Vec<i16>,
    fence: Vec<i64>,
    cursor: Vec<i64>,
    state: Vec<Option<String>>,
}

impl Lanes {
    fn of(settlement: &Settlement) -> Result<Self, StoreError> {
        let mut columns = Self::default();
        for progress in &settlement.lanes {
            columns.lane.push(progress.lane.0 as i16);
            columns.fence.push(progress.fence.0);
            columns.cursor.push(progress.cursor);
            columns.state.push(state::write(OPERATION, progress)?);
        }
        Ok(columns)
    }
}

#[derive(Default)]
struct AsideColumns<'a> {
    lane: Vec<i16>,
    id: Vec<i64>,
    topic: Vec<&'a str>,
    key: Vec<Option<i64>>,
    sink: Vec<&'a str>,
    state: Vec<&'static str>,
    attempts: Vec<i32>,
    reason: Vec<&'a str>,
    then: Vec<&'static str>,
    delay_ms: Vec<i64>,
}

impl<'a> AsideColumns<'a> {
    fn of(aside: &'a [SetAside]) -> Self {
        let mut columns = Self::default();
        aside.iter().for_each(|set| columns.add(set));
        columns
    }

    fn add(&mut self, set: &'a SetAside) {
        let Waiting { state, attempts, reason, then, delay } = set.aside.waiting();
        self.lane.push(set.lane.0 as i16);
        self.id.push(set.position.0);
        self.topic.push(&set.topic);
        self.key.push(set.key.map(|key| key.0));
        self.sink.push(&set.sink);
        self.state.push(state.as_str());
        self.attempts.push(attempts as i32);
        self.reason.push(reason);
        self.then.push(then.as_str());
        self.delay_ms.push(millis(delay));
    }
}
