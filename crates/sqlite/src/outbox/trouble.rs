//! Sinks that take nothing at the moment.

use super::rows;
use crate::{
    errors::Failure,
    sql::{Millis, Sql, millis},
};
use rusqlite::{Row, params};
use tidegate_core::outbox::{SinkTrouble, TroubleNote, TroubledSink};

pub(super) fn note(sql: &Sql, note: &TroubleNote) -> Result<(), Failure> {
    let now = sql.now()?;
    let row = |it: &TroubledSink| {
        let since = now.0.saturating_sub(millis(it.lasts));
        serde_json::json!([it.sink, it.reason, since])
    };
    let sinks = rows(note.sinks.iter().map(row));
    let text = include_str!("../sql/outbox/trouble_forget.sql");
    sql.execute(text, params![note.relay.0, sinks, now.0])?;
    let until = now.0.saturating_add(millis(note.valid));
    let text = include_str!("../sql/outbox/trouble_note.sql");
    sql.execute(text, params![note.relay.0, sinks, until])?;
    Ok(())
}

pub(super) fn read(sql: &Sql, now: Millis) -> Result<Vec<SinkTrouble>, Failure> {
    let trouble = |row: &Row<'_>| {
        Ok(SinkTrouble {
            sink: row.get("sink")?,
            reason: row.get("reason")?,
            lasts: now.since(Millis(row.get("since_ms")?)),
            relays: row.get("relays")?,
        })
    };
    Ok(sql.rows(include_str!("../sql/outbox/trouble.sql"), [now.0], trouble)?)
}
