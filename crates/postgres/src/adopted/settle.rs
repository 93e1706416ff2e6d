//! Marks rows as done and writes what was set aside, in one statement.

use super::{
    Adopted,
    rows::{Poison, lane},
};
use crate::{
    decode::{get, millis},
    error::corrupt,
};
use std::collections::HashSet;
use tidegate_core::{
    Fence, Position, StoreError,
    outbox::{Aside, HeldKey, KeyHash, OnDead, SetAside, Settled, Settlement, Waiting},
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "settle messages";

impl Adopted {
    pub(super) async fn settle(&self, settlement: &Settlement) -> Result<Settled, StoreError> {
        let Some(fence) = settlement.lanes.first().map(|progress| progress.fence) else {
            return Ok(Settled::default());
        };
        let news = self.news(settlement, fence);
        let rows = self.send_settlement(settlement, fence, &news).await?;
        let row = rows.first().ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))?;
        if !get::<bool>(OPERATION, row, "held")? {
            if went_back(settlement, row)? {
                return Err(StoreError::went_back(OPERATION));
            }
            let late = settlement.lanes.iter().map(|progress| progress.lane).collect();
            return Ok(Settled { late, freed: Vec::new() });
        }
        self.rows().forget(&news.settled);
        Ok(Settled { late: Vec::new(), freed: freed(row)? })
    }

    /// What becomes of which rows. Under another lease nothing is known about them.
    fn news(&self, settlement: &Settlement, fence: Fence) -> News {
        let rows = self.rows();
        if rows.fence() != fence {
            return News::default();
        }
        let set: HashSet<Position> = settlement.aside.iter().map(|set| set.position).collect();
        let mut news = News { last_id: rows.last_id(), ..News::default() };
        for id in rows.passed(&settlement.lanes).into_iter().filter(|id| !set.contains(id)) {
            news.done_rows.extend(rows.row_key(id).map(str::to_owned));
            news.settled.push(id);
        }
        let vanished = rows.vanished();
        news.done_ids.extend(settlement.done.iter().map(|(_, id)| id.0));
        news.done_ids.extend(vanished.iter().map(|id| id.0));
        settlement.aside.iter().for_each(|set| news.aside.add(set, rows.row_key(set.position)));
        let poison = rows.poison();
        poison.iter().for_each(|(id, poison)| news.aside.add_poison(*id, poison));
        let unchosen = rows.unchosen();
        unchosen.iter().for_each(|id| news.aside.add_unchosen(*id));
        let encoding = &self.plan.table.encoding;
        news.aside.reason.iter_mut().for_each(|reason| *reason = encoding.fit(reason));
        news.settled.extend(set);
        news.settled.extend(vanished.into_iter().chain(unchosen));
        news.settled.extend(poison.into_iter().map(|(id, _)| id));
        news
    }

    async fn send_settlement(
        &self,
        settlement: &Settlement,
        fence: Fence,
        news: &News,
    ) -> Result<Vec<Row>, StoreError> {
        let aside = &news.aside;
        self.pool
            .query(
                self.pool.leased(OPERATION),
                &self.statements.settle,
                &[
                    (&self.plan.table.adopted, Type::TEXT),
                    (&self.statements.values, Type::TEXT_ARRAY),
                    (&fence.0, Type::INT8),
                    (&news.last_id, Type::INT8),
                    (&news.done_rows, Type::TEXT_ARRAY),
                    (&news.done_ids, Type::INT8_ARRAY),
                    (&aside.id, Type::INT8_ARRAY),
                    (&aside.row_key, Type::TEXT_ARRAY),
                    (&aside.topic, Type::TEXT_ARRAY),
                    (&aside.key, Type::INT8_ARRAY),
                    (&aside.sink, Type::TEXT_ARRAY),
                    (&aside.state, Type::TEXT_ARRAY),
                    (&aside.attempts, Type::INT4_ARRAY),
                    (&aside.reason, Type::TEXT_ARRAY),
                    (&aside.then, Type::TEXT_ARRAY),
                    (&aside.delay_ms, Type::INT8_ARRAY),
                    (&(settlement.number as i64), Type::INT8),
                    (&settlement.epoch.0, Type::TEXT),
                ],
            )
            .await
    }
}

/// Whether a lease that is held is not where the relay left it.
fn went_back(settlement: &Settlement, row: &Row) -> Result<bool, StoreError> {
    let Some(last) = get::<Option<i64>>(OPERATION, row, "settled")? else { return Ok(false) };
    let epoch: Option<&str> = get(OPERATION, row, "epoch")?;
    let is_same = epoch == Some(settlement.epoch.0.as_str());
    Ok(!is_same || settlement.number > last.unsigned_abs() + 1)
}

fn freed(row: &Row) -> Result<Vec<HeldKey>, StoreError> {
    let sinks: Vec<String> = get(OPERATION, row, "freed_sinks")?;
    let keys: Vec<i64> = get(OPERATION, row, "freed_keys")?;
    let held = |(sink, key): (String, i64)| {
        let key = KeyHash(key);
        HeldKey { lane: lane(Some(key), Position::default()), sink, key }
    };
    Ok(sinks.into_iter().zip(keys).map(held).collect())
}

/// What a settlement means for rows.
#[derive(Default)]
struct News {
    last_id: i64,
    done_rows: Vec<String>,
    done_ids: Vec<i64>,
    aside: AsideColumns,
    /// Afterwards these need not be remembered.
    settled: Vec<Position>,
}

#[derive(Default)]
struct AsideColumns {
    id: Vec<i64>,
    row_key: Vec<Option<String>>,
    topic: Vec<String>,
    key: Vec<Option<i64>>,
    sink: Vec<String>,
    state: Vec<&'static str>,
    attempts: Vec<i32>,
    reason: Vec<String>,
    then: Vec<&'static str>,
    delay_ms: Vec<i64>,
}

impl AsideColumns {
    fn add(&mut self, set: &SetAside, row_key: Option<&str>) {
        let Waiting { state, attempts, reason, then, delay } = set.aside.waiting();
        self.id.push(set.position.0);
        self.row_key.push(row_key.map(str::to_owned));
        self.topic.push(set.topic.clone());
        self.key.push(set.key.map(|key| key.0));
        self.sink.push(set.sink.clone());
        self.state.push(state.as_str());
        self.attempts.push(attempts as i32);
        self.reason.push(reason.to_owned());
        self.then.push(then.as_str());
        self.delay_ms.push(millis(delay));
    }

    /// The side table has its topic and key. Whoever takes the table over looks at it again.
    fn add_unchosen(&mut self, position: Position) {
        let (topic, sink, key) = Default::default();
        let set = SetAside {
            lane: lane(None, position),
            position,
            topic,
            key,
            sink,
            aside: Aside::Unrouted,
        };
        self.add(&set, None);
    }

    /// What is no message is dead, and its key goes on.
    fn add_poison(&mut self, position: Position, poison: &Poison) {
        let Poison { row_key, topic, key, sink, attempts, reason } = poison.clone();
        let aside = Aside::Dead { attempts, reason, then: OnDead::Skip };
        let set = SetAside { lane: lane(key, position), position, topic, key, sink, aside };
        self.add(&set, row_key.as_deref());
    }
}
