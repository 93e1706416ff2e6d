//! Progress and what was set aside, lane by lane.

use super::{numbers, row, rows};
use crate::{
    errors::Failure,
    sql::{Millis, Sql, array},
};
use rusqlite::{Row, params};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_core::{
    StoreError,
    outbox::{
        Choice, HeldKey, Lag, Lane, Pattern, SetAside, Settled, Settlement, StuckState, Topics,
        Waiting,
    },
};

pub(super) fn settle(sql: &Sql, settlement: &Settlement) -> Result<Settled, Failure> {
    let now = sql.now()?;
    let held = move_on(sql, settlement)?;
    let asked = settlement.lanes.iter().map(|progress| progress.lane);
    let late = asked.filter(|lane| !held.contains(lane)).collect();
    write_lags(sql, settlement, &held)?;
    write_before(sql, settlement, &held)?;
    let touched = write_aside(sql, settlement, &held, now)?;
    Ok(Settled { late, freed: tend(sql, touched, now)? })
}

/// Returns the lanes that are held: none for a copy of an earlier settlement that arrives late.
fn move_on(sql: &Sql, settlement: &Settlement) -> Result<BTreeSet<Lane>, Failure> {
    let lanes = settlement.lanes.iter();
    let lanes = rows(lanes.map(|it| json!([it.lane.0, it.fence.0, it.cursor])));
    let number = settlement.number as i64;
    let (noted, found) = (include_str!("../sql/outbox/settle_number.sql"), |_: &Row<'_>| Ok(()));
    if sql.row(noted, params![lanes, number], found)?.is_none() {
        let last = include_str!("../sql/outbox/settle_last.sql");
        let last: Option<i64> = sql.row(last, [lanes], |row| row.get("number"))?;
        return match last {
            Some(last) if number > last + 1 => Err(StoreError::went_back("settle messages").into()),
            _ => Ok(BTreeSet::new()),
        };
    }
    let held = sql.rows(include_str!("../sql/outbox/settle_lanes.sql"), [lanes], row::lane)?;
    Ok(held.into_iter().collect())
}

fn write_lags(sql: &Sql, settlement: &Settlement, held: &BTreeSet<Lane>) -> Result<(), Failure> {
    sql.execute(include_str!("../sql/outbox/settle_caught_up.sql"), [numbers(held)])?;
    let lanes = settlement.lanes.iter().filter(|progress| held.contains(&progress.lane));
    let lags = lanes.flat_map(|it| it.lags.iter().map(move |lag| lag_row(it.lane, lag)));
    let lags: Vec<Value> = lags.collect();
    if !lags.is_empty() {
        sql.execute(include_str!("../sql/outbox/settle_lags.sql"), [rows(lags)])?;
    }
    Ok(())
}

fn write_before(sql: &Sql, settlement: &Settlement, held: &BTreeSet<Lane>) -> Result<(), Failure> {
    sql.execute(include_str!("../sql/outbox/settle_forget_before.sql"), [numbers(held)])?;
    let lanes = settlement.lanes.iter().filter(|progress| held.contains(&progress.lane));
    let before =
        lanes.filter_map(|it| Some(json!([it.lane.0, json!(it.before.as_ref()?).to_string()])));
    let before: Vec<Value> = before.collect();
    if !before.is_empty() {
        sql.execute(include_str!("../sql/outbox/settle_before.sql"), [rows(before)])?;
    }
    Ok(())
}

fn lag_row(lane: Lane, lag: &Lag) -> Value {
    let [topics, globs] = [&lag.topics, &globs(&lag.topics)].map(|it| json!(it).to_string());
    json!([lane.0, lag.sink, topics, globs, lag.cursor])
}

/// Topics with patterns as GLOB takes them: there `?` and `[` mean more than themselves.
fn globs(topics: &Topics) -> Topics {
    let glob = |pattern: &Pattern| {
        let escape = |c: char| match c {
            '?' | '[' => format!("[{c}]"),
            c => c.to_string(),
        };
        Pattern(pattern.0.chars().map(escape).collect())
    };
    let choice = |choice: &Choice| Choice {
        takes: glob(&choice.takes),
        unless: choice.unless.iter().map(glob).collect(),
    };
    Topics(topics.0.iter().map(choice).collect())
}

/// Returns the keys that this touched.
fn write_aside(
    sql: &Sql,
    settlement: &Settlement,
    held: &BTreeSet<Lane>,
    now: Millis,
) -> Result<BTreeSet<HeldKey>, Failure> {
    let done = settlement.done.iter().filter(|(lane, _)| held.contains(lane)).map(|(_, id)| *id);
    let done: Vec<_> = done.collect();
    let aside = settlement.aside.iter().filter(|set| held.contains(&set.lane));
    let aside: Vec<&SetAside> = aside.collect();
    let ids = array(done.iter().copied().chain(aside.iter().map(|set| set.position)));
    let before = include_str!("../sql/outbox/settle_touched.sql");
    let mut touched: BTreeSet<HeldKey> =
        sql.rows(before, [ids], row::held_key)?.into_iter().collect();
    touched.extend(aside.iter().filter_map(|set| key_of(set)));
    if !done.is_empty() {
        sql.execute(include_str!("../sql/outbox/settle_done.sql"), [array(done)])?;
    }
    if !aside.is_empty() {
        let aside = rows(aside.into_iter().map(|set| aside_row(set, now)));
        sql.execute(include_str!("../sql/outbox/settle_aside.sql"), [aside])?;
    }
    Ok(touched)
}

fn key_of(set: &SetAside) -> Option<HeldKey> {
    Some(HeldKey { lane: set.lane, sink: set.sink.clone(), key: set.key? })
}

pub(super) fn aside_row(set: &SetAside, now: Millis) -> Value {
    let Waiting { state, attempts, reason, then, delay } = set.aside.waiting();
    // Without a key there is nothing that it could wait behind.
    let alone = state == StuckState::Behind && set.key.is_none();
    let state = if alone { StuckState::Retry } else { state };
    json!([
        set.position.0,
        set.lane.0,
        set.topic,
        set.key.map(|key| key.0),
        set.sink,
        state.as_str(),
        attempts,
        reason,
        then.as_str(),
        now.plus(delay).0,
    ])
}

/// Makes the first that waits of each key due, unless one before it holds the key; all others wait.
/// Returns those keys that nothing holds any more.
pub(super) fn tend(
    sql: &Sql,
    touched: BTreeSet<HeldKey>,
    now: Millis,
) -> Result<Vec<HeldKey>, Failure> {
    if touched.is_empty() {
        return Ok(Vec::new());
    }
    let keys = rows(touched.iter().map(|it| json!([it.lane.0, it.sink, it.key.0])));
    sql.execute(include_str!("../sql/outbox/settle_tend.sql"), params![keys, now.0])?;
    sql.execute(include_str!("../sql/outbox/settle_wait.sql"), [&keys])?;
    let freed = include_str!("../sql/outbox/settle_freed.sql");
    let freed: BTreeSet<usize> = sql.rows(freed, [keys], |row| row.get(0))?.into_iter().collect();
    let touched = touched.into_iter().enumerate();
    Ok(touched.filter(|(place, _)| freed.contains(place)).map(|(_, key)| key).collect())
}
