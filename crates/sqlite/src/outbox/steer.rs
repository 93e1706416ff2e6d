//! What people decide about the dead.

use super::{row, settle::tend};
use crate::{
    errors::Failure,
    sql::{Millis, Sql, array},
};
use rusqlite::{Row, params};
use tidegate_core::outbox::{AuditLine, HeldKey, Selection};

pub(super) fn retry(sql: &Sql, which: &Selection, by: &AuditLine) -> Result<u64, Failure> {
    let now = sql.now()?;
    let ids = which.ids.as_ref().map(array);
    let params = params![ids, which.topic, which.sink, which.reason, now.0];
    let retried = sql.rows(include_str!("../sql/outbox/steer_retry.sql"), params, key)?;
    let count = retried.len();
    tend(sql, retried.into_iter().flatten().collect(), now)?;
    note(sql, "retry", count, by, now)?;
    Ok(count as u64)
}

pub(super) fn drop(sql: &Sql, which: &Selection, by: &AuditLine) -> Result<u64, Failure> {
    let now = sql.now()?;
    let ids = which.ids.as_ref().map(array);
    let params = params![ids, which.topic, which.sink, which.reason];
    let dropped = sql.rows(include_str!("../sql/outbox/steer_drop.sql"), params, |row| {
        Ok((row.get::<_, i64>("id")?, key(row)?))
    })?;
    let (ids, keys): (Vec<i64>, Vec<Option<HeldKey>>) = dropped.into_iter().unzip();
    sql.execute(include_str!("../sql/outbox/steer_remove.sql"), [array(&ids)])?;
    tend(sql, keys.into_iter().flatten().collect(), now)?;
    note(sql, "drop", ids.len(), by, now)?;
    Ok(ids.len() as u64)
}

fn key(row: &Row<'_>) -> rusqlite::Result<Option<HeldKey>> {
    match row.get::<_, Option<i64>>("key_hash")? {
        Some(_) => row::held_key(row).map(Some),
        None => Ok(None),
    }
}

fn note(
    sql: &Sql,
    what: &str,
    messages: usize,
    by: &AuditLine,
    now: Millis,
) -> Result<(), Failure> {
    let params = params![now.0, by.who, what, messages, by.why];
    sql.execute(include_str!("../sql/outbox/steer_note.sql"), params)?;
    Ok(())
}
