//! Reading stored messages.

use crate::{
    errors::{Failure, corrupt},
    row::parsed,
    sql::{Millis, Sql},
};
use rusqlite::Row;
use tidegate_core::{
    Headers, Message, MessageId,
    outbox::{HeldKey, KeyHash, Lane, Origin},
};

/// What makes ids of messages unique among outboxes.
pub(super) fn outbox_name(sql: &Sql) -> Result<String, Failure> {
    let name = sql.row(include_str!("../sql/outbox/name.sql"), [], |row| row.get(0))?;
    Ok(name.ok_or_else(|| corrupt("read outbox", "the table `outbox_state`"))?)
}

/// Reads the columns of a message by their names. It has not been set aside.
pub(super) fn message(name: &str, row: &Row<'_>, now: Millis) -> rusqlite::Result<Message> {
    let id: i64 = row.get("id")?;
    let headers = parsed(row, "headers", |text: Option<String>| match text {
        None => Some(Headers::new()),
        Some(text) => serde_json::from_str(&text).ok(),
    })?;
    let published_ms: i64 = row.get("published_ms")?;
    let not_before = row.get::<_, Option<i64>>("not_before_ms")?.map(Millis);
    Ok(Message {
        id: MessageId(id),
        name: Message::name_of(name, published_ms.unsigned_abs().into(), MessageId(id)),
        lane: lane(row)?,
        topic: row.get("topic")?,
        key: row.get("key")?,
        headers,
        payload: row.get("payload")?,
        published_ms,
        origin: Origin::Lane { due_in: not_before.filter(|at| *at > now).map(|at| at.since(now)) },
    })
}

pub(super) fn lane(row: &Row<'_>) -> rusqlite::Result<Lane> {
    row.get("lane").map(Lane)
}

pub(super) fn held_key(row: &Row<'_>) -> rusqlite::Result<HeldKey> {
    Ok(HeldKey { lane: lane(row)?, sink: row.get("sink")?, key: KeyHash(row.get("key_hash")?) })
}
