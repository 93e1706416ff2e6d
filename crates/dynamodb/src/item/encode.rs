//! A message → an item.

use super::{
    HEADERS, Item, bytes,
    name::{
        BODY, CHARACTER_ENCODING, CREATED_AT, CREATED_TIME, HEADER_BAG, MESSAGE_ID, NOT_BEFORE,
        OUTSTANDING, PARTITION_KEY, TOPIC, TOPIC_SHARD,
    },
    number,
    size::{MAX_ITEM_BYTES, ROOM_FOR_MARKS, size},
    text,
};
use crate::{error::refused, shard, ticks::Ticks};
use serde_json::{Map, Value, value::RawValue};
use std::{collections::BTreeMap, time::Duration};
use tidegate_core::{Headers, NewMessage, StoreError, headers::JSON};

/// What a message gets when it is published.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// What it is known by: the same again is the same message.
    pub id: &'a str,
    /// When it was made.
    pub created: Ticks,
    /// Its part of the topic.
    pub shard: u32,
}

/// The item of a message that is outstanding. Refuses what no item can hold.
pub fn encode(message: &NewMessage, outgoing: Outgoing<'_>) -> Result<Item, StoreError> {
    message.check()?;
    let Outgoing { id, created, shard } = outgoing;
    if id.is_empty() || id.len() > 2_048 {
        return Err(refused("publish", "the id of a message has 1 to 2048 bytes"));
    }
    let mut item = Item::from([
        (MESSAGE_ID.to_owned(), text(id)),
        (TOPIC.to_owned(), text(&message.topic)),
        (TOPIC_SHARD.to_owned(), text(shard::name(&message.topic, shard))),
        (BODY.to_owned(), bytes(&message.payload)),
        (CHARACTER_ENCODING.to_owned(), text(encoding(&message.payload))),
        ("ContentType".to_owned(), text(JSON)),
        ("MessageType".to_owned(), text("MT_EVENT")),
        (HEADER_BAG.to_owned(), text(bag(&message.headers)?)),
        ("HandledCount".to_owned(), number(0)),
        ("DelayedMilliseconds".to_owned(), number(0)),
    ]);
    if let Some(key) = &message.key {
        item.insert(PARTITION_KEY.to_owned(), text(key));
    }
    for (header, attribute) in HEADERS {
        if let Some(value) = message.headers.get_own(header).filter(|value| !value.is_empty()) {
            item.insert(attribute.to_owned(), text(value));
        }
    }
    stamp(&mut item, created, message.delay);
    let bytes = size(&item) + ROOM_FOR_MARKS;
    if bytes > MAX_ITEM_BYTES {
        let problem = format!(
            "with its headers and the {ROOM_FOR_MARKS} bytes that its marks need, the message has {bytes} bytes, and \
             DynamoDB takes {MAX_ITEM_BYTES}: keep the payload elsewhere, such as in S3, and publish where it is"
        );
        return Err(refused("publish", problem));
    }
    Ok(item)
}

/// Writes into the item of a message when it was made: it is outstanding since then, and due when its delay is over.
pub fn stamp(item: &mut Item, created: Ticks, delay: Option<Duration>) {
    item.insert(CREATED_AT.to_owned(), text(created.text()));
    item.insert(CREATED_TIME.to_owned(), number(created.0));
    item.insert(OUTSTANDING.to_owned(), number(created.0));
    if let Some(delay) = delay {
        item.insert(NOT_BEFORE.to_owned(), number(created.after(delay).0));
    }
}

fn encoding(payload: &[u8]) -> &'static str {
    if std::str::from_utf8(payload).is_ok() { "UTF8" } else { "Raw" }
}

/// All headers without an attribute of their own, as a flat JSON object. Those that were read from an object keep
/// their types.
fn bag(headers: &Headers) -> Result<String, StoreError> {
    let has_attribute =
        |name: &str| HEADERS.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
    let unreadable = |error| refused("publish", format!("a header cannot be stored: {error}"));
    let own = headers.iter_own().filter(|(name, _)| !has_attribute(name));
    let mut bag: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
    for (name, json) in headers.further().into_iter().flatten() {
        bag.insert(name, RawValue::from_string(json.to_owned()).map_err(unreadable)?);
    }
    for (name, value) in own {
        let value = serde_json::to_string(value).and_then(RawValue::from_string);
        bag.insert(name, value.map_err(unreadable)?);
    }
    match bag.is_empty() {
        true => Ok(Value::Object(Map::new()).to_string()),
        false => serde_json::to_string(&bag).map_err(unreadable),
    }
}
