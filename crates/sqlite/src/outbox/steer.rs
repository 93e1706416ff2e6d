//! What people decide about the dead, a page at a time: one transaction holds up all writers.

use super::{row, settle::tend};
use crate::{
    errors::Failure,
    sql::{Millis, Sql, array},
};
use rusqlite::{Row, params};
use tidegate_core::{
    MessageId,
    outbox::{Decision, HeldKey, SteerPage, Steered},
};

pub(super) fn steer(sql: &Sql, page: &SteerPage) -> Result<Steered, Failure> {
    let now = sql.now()?;
    let after = MessageId::number_before(page.after.as_ref());
    let seen: Vec<i64> = match &page.which.ids {
        Some(ids) => {
            let behind = MessageId::numbers(ids).into_iter().filter(|id| *id > after);
            behind.take(page.most).collect()
        }
        None => {
            let text = include_str!("../sql/outbox/steer_page.sql");
            sql.rows(text, params![after, page.most], |row| row.get(0))?
        }
    };
    let changed = match page.decision {
        Decision::Retry => retry(sql, page, &seen, now)?,
        Decision::Drop => drop(sql, page, &seen)?,
    };
    let messages = changed.len() as u64;
    tend(sql, changed.into_iter().flatten().collect(), now)?;
    let next = seen.iter().max().copied().filter(|_| seen.len() == page.most);
    Ok(Steered {
        messages,
        next: next.map(MessageId::number),
        line: note(sql, page, messages, now)?,
    })
}

fn retry(
    sql: &Sql,
    page: &SteerPage,
    seen: &[i64],
    now: Millis,
) -> Result<Vec<Option<HeldKey>>, Failure> {
    let which = &page.which;
    let params = params![array(seen), which.topic, which.sink, which.reason, now.0];
    Ok(sql.rows(include_str!("../sql/outbox/steer_retry.sql"), params, key)?)
}

fn drop(sql: &Sql, page: &SteerPage, seen: &[i64]) -> Result<Vec<Option<HeldKey>>, Failure> {
    let which = &page.which;
    let params = params![array(seen), which.topic, which.sink, which.reason];
    let dropped = sql.rows(include_str!("../sql/outbox/steer_drop.sql"), params, |row| {
        Ok((row.get::<_, i64>("id")?, key(row)?))
    })?;
    let (ids, keys): (Vec<i64>, Vec<Option<HeldKey>>) = dropped.into_iter().unzip();
    sql.execute(include_str!("../sql/outbox/steer_remove.sql"), [array(&ids)])?;
    Ok(keys)
}

fn key(row: &Row<'_>) -> rusqlite::Result<Option<HeldKey>> {
    match row.get::<_, Option<i64>>("key_hash")? {
        Some(_) => row::held_key(row).map(Some),
        None => Ok(None),
    }
}

/// Adds the page to its command's audit line, which begins with the first page that changes something.
fn note(sql: &Sql, page: &SteerPage, messages: u64, now: Millis) -> Result<Option<i64>, Failure> {
    if messages == 0 {
        return Ok(page.line);
    }
    if let Some(line) = page.line {
        sql.execute(include_str!("../sql/outbox/steer_add.sql"), params![line, messages])?;
        return Ok(Some(line));
    }
    let (what, by) = (page.decision.as_str(), &page.by);
    let params = params![now.0, by.who, what, messages, by.why];
    Ok(sql.row(include_str!("../sql/outbox/steer_note.sql"), params, |row| row.get(0))?)
}
