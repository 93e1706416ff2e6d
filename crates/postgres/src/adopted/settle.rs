//! Marks rows as done and writes what was set aside, in one statement.

use super::{Adopted, encoding::Encoding, message::lane};
use crate::{
    decode::{get, millis},
    error::corrupt,
};
use tidegate_core::{
    Fence, StoreError,
    outbox::{HeldKey, KeyHash, SetAside, Settled, Waiting, by_state::Marks},
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "settle messages";

impl Adopted {
    pub(super) async fn settle(&self, marks: &Marks) -> Result<Settled, StoreError> {
        let Some(fence) = marks.lanes.first().map(|lease| lease.fence) else {
            return Ok(Settled::default());
        };
        let rows = self.send_marks(marks, fence).await?;
        let row = rows.first().ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))?;
        if !get::<bool>(OPERATION, row, "held")? {
            if went_back(marks, row)? {
                return Err(StoreError::went_back(OPERATION));
            }
            let late = marks.lanes.iter().map(|lease| lease.lane).collect();
            return Ok(Settled { late, freed: Vec::new() });
        }
        Ok(Settled { late: Vec::new(), freed: freed(row)? })
    }

    async fn send_marks(&self, marks: &Marks, fence: Fence) -> Result<Vec<Row>, StoreError> {
        let done: Vec<&str> = marks.done.iter().map(|(_, row)| &**row).collect();
        let aside_done: Vec<i64> =
            marks.aside_done.iter().map(|(_, position)| position.0).collect();
        let mut aside = AsideColumns::default();
        for (row, set) in &marks.aside {
            aside.add(set, row.as_deref(), &self.plan.table.encoding);
        }
        self.pool
            .query(
                self.pool.leased(OPERATION),
                &self.statements.settle,
                &[
                    (&self.plan.table.adopted, Type::TEXT),
                    (&self.statements.values, Type::TEXT_ARRAY),
                    (&fence.0, Type::INT8),
                    (&marks.last.0, Type::INT8),
                    (&done, Type::TEXT_ARRAY),
                    (&aside_done, Type::INT8_ARRAY),
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
                    (&(marks.number as i64), Type::INT8),
                    (&marks.epoch.0, Type::TEXT),
                ],
            )
            .await
    }
}

/// Whether a lease that is held is not where the relay left it.
fn went_back(marks: &Marks, row: &Row) -> Result<bool, StoreError> {
    let Some(last) = get::<Option<i64>>(OPERATION, row, "settled")? else { return Ok(false) };
    let epoch: Option<&str> = get(OPERATION, row, "epoch")?;
    let is_same = epoch == Some(marks.epoch.0.as_str());
    Ok(!is_same || marks.number > last.unsigned_abs() + 1)
}

fn freed(row: &Row) -> Result<Vec<HeldKey>, StoreError> {
    let sinks: Vec<String> = get(OPERATION, row, "freed_sinks")?;
    let keys: Vec<i64> = get(OPERATION, row, "freed_keys")?;
    let held = |(sink, key): (String, i64)| {
        let key = KeyHash(key);
        HeldKey { lane: lane(key), sink, key }
    };
    Ok(sinks.into_iter().zip(keys).map(held).collect())
}

/// What was set aside, column by column.
#[derive(Default)]
struct AsideColumns<'a> {
    id: Vec<i64>,
    row_key: Vec<Option<&'a str>>,
    topic: Vec<&'a str>,
    key: Vec<Option<i64>>,
    sink: Vec<&'a str>,
    state: Vec<&'static str>,
    attempts: Vec<i32>,
    reason: Vec<String>,
    then: Vec<&'static str>,
    delay_ms: Vec<i64>,
}

impl<'a> AsideColumns<'a> {
    fn add(&mut self, set: &'a SetAside, row_key: Option<&'a str>, encoding: &Encoding) {
        let Waiting { state, attempts, reason, then, delay } = set.aside.waiting();
        self.id.push(set.position.0);
        self.row_key.push(row_key);
        self.topic.push(&set.topic);
        self.key.push(set.key.map(|key| key.0));
        self.sink.push(&set.sink);
        self.state.push(state.as_str());
        self.attempts.push(attempts as i32);
        self.reason.push(encoding.fit(reason));
        self.then.push(then.as_str());
        self.delay_ms.push(millis(delay));
    }
}
