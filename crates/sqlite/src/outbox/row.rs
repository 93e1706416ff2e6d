//! Reading stored messages.

use crate::{
    errors::{Failure, corrupt},
    sql::{Millis, Sql},
};
use rusqlite::{Row, types::ValueRef};
use std::borrow::Cow;
use tidegate_core::{
    Headers, Message, MessageId, Position,
    outbox::{HeldKey, KeyHash, LANES, Lane, Origin},
};

/// What makes ids of messages unique among outboxes.
pub(super) fn outbox_name(sql: &Sql) -> Result<String, Failure> {
    let name = sql.row(include_str!("../sql/outbox/name.sql"), [], |row| row.get(0))?;
    Ok(name.ok_or_else(|| corrupt("read outbox", "the table `outbox_state`"))?)
}

/// Reads the columns of a message by their names. It has not been set aside.
///
/// Any program can write to the file, and SQLite takes any bytes for text: what cannot be decoded is the damage of this
/// message, and no failure of the statement that came across it.
pub(super) fn message(name: &str, row: &Row<'_>, now: Millis) -> rusqlite::Result<Message> {
    let position = Position(row.get("id")?);
    let id = MessageId::from(position);
    let mut damage = None;
    let mut read = |name| -> rusqlite::Result<Option<String>> {
        Ok(bytes(row, name)?.map(|bytes| {
            String::from_utf8(bytes.into_owned()).unwrap_or_else(|error| {
                damage.get_or_insert_with(|| format!("its {name} is not valid UTF-8"));
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            })
        }))
    };
    let (topic, key) = (read("topic")?.unwrap_or_default(), read("key")?);
    let headers = bytes(row, "headers")?.map(|text| serde_json::from_slice::<Headers>(&text));
    let headers = headers.transpose().unwrap_or_else(|_| {
        damage.get_or_insert_with(|| "its headers are no JSON object of strings".to_owned());
        None
    });
    let published_ms: i64 = row.get("published_ms")?;
    let not_before = row.get::<_, Option<i64>>("not_before_ms")?.map(Millis);
    Ok(Message {
        name: Message::name_of(name, published_ms.unsigned_abs().into(), &id),
        id,
        position,
        lane: message_lane(row)?,
        topic,
        key,
        headers: headers.unwrap_or_default(),
        payload: bytes(row, "payload")?.unwrap_or_default().into_owned(),
        published_ms,
        origin: Origin::Lane { due_in: not_before.filter(|at| *at > now).map(|at| at.since(now)) },
        damage,
    })
}

/// A text that any program may have written, with replacement characters for what is none.
pub(super) fn text(row: &Row<'_>, name: &str) -> rusqlite::Result<Option<String>> {
    Ok(bytes(row, name)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The topic of a message, as [`text`].
pub(super) fn topic(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(text(row, "topic")?.unwrap_or_default())
}

fn bytes<'r>(row: &'r Row<'_>, name: &str) -> rusqlite::Result<Option<Cow<'r, [u8]>>> {
    Ok(match row.get_ref(name)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into_bytes().into()),
        ValueRef::Real(number) => Some(number.to_string().into_bytes().into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.into()),
    })
}

/// The lane of a message. SQLite may compute any number from a key that is not valid UTF-8: such a message is in no
/// lane, and is set aside in this one.
pub(super) fn message_lane(row: &Row<'_>) -> rusqlite::Result<Lane> {
    let lane: i64 = row.get("lane")?;
    Ok(Lane(lane.rem_euclid(LANES.into()) as u16))
}

pub(super) fn lane(row: &Row<'_>) -> rusqlite::Result<Lane> {
    row.get("lane").map(Lane)
}

pub(super) fn held_key(row: &Row<'_>) -> rusqlite::Result<HeldKey> {
    Ok(HeldKey { lane: lane(row)?, sink: row.get("sink")?, key: KeyHash(row.get("key_hash")?) })
}
