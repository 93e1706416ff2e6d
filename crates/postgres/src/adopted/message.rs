//! A row becomes a message, or turns out to be none.

use super::{
    encoding::{self, Text, Texts},
    mapping::PayloadKind,
    resolve::Plan,
    rows::lane,
};
use crate::decode::get;
use serde_json::Value;
use std::collections::BTreeMap;
use tidegate_core::{
    Headers, Message, MessageId, NewMessage, StoreError,
    headers::{KEY_USE, ORDER_ONLY},
    outbox::{KeyHash, Origin},
};
use tokio_postgres::Row;

const OPERATION: &str = "read adopted table";

/// A row of the adopted table.
pub(super) struct Found {
    pub row_key: String,
    pub published_ms: i64,
    message: NewMessage,
    /// Why it is no message.
    pub problem: Option<String>,
}

impl Found {
    /// Reads a row that has all columns of a message.
    pub(super) fn read(plan: &Plan, texts: &Texts<'_>, row: &Row) -> Result<Self, StoreError> {
        let unreadable = |what: &str| Some(plan.table.encoding.problem(what));
        let (topic, mut problem) = match texts.get(row, "topic")? {
            None => (String::new(), Some("its topic is null".to_owned())),
            Some(Text::Read(topic)) => (topic, None),
            Some(bytes) => (bytes.shown(), unreadable("topic")),
        };
        let key = match texts.get(row, "key")? {
            Some(Text::Bytes(_)) => {
                problem = problem.or(unreadable("key"));
                None
            }
            key => key.map(Text::shown),
        };
        let (payload, is_read) = encoding::payload(plan, texts, row)?;
        if !is_read {
            problem = problem.or(unreadable("payload"));
        }
        let headers = headers(plan, texts, row)?.unwrap_or_else(|why| {
            problem = problem.take().or(Some(why));
            Headers::new()
        });
        let payload = payload.unwrap_or_else(|| nothing(plan.payload_kind));
        let message = NewMessage { topic, key, payload, headers, delay: None };
        let problem =
            problem.or_else(|| message.check_stored().err().map(|error| in_short(&error)));
        Ok(Self {
            row_key: get(OPERATION, row, "row_key")?,
            published_ms: get(OPERATION, row, "published_ms")?,
            message,
            problem,
        })
    }

    pub(super) fn topic(&self) -> &str {
        &self.message.topic
    }

    pub(super) fn key(&self) -> Option<KeyHash> {
        self.message.key.as_deref().map(KeyHash::of)
    }

    pub(super) fn message(self, id: MessageId, origin: Origin) -> Message {
        let lane = lane(self.key(), id);
        let NewMessage { topic, key, payload, headers, .. } = self.message;
        let (name, published_ms) = (self.row_key, self.published_ms);
        Message { id, name, lane, topic, key, headers, payload, published_ms, origin, damage: None }
    }
}

/// What a payload that is null stands for.
fn nothing(kind: PayloadKind) -> Vec<u8> {
    match kind {
        PayloadKind::Json => b"null".to_vec(),
        PayloadKind::Text | PayloadKind::Bytes => Vec::new(),
    }
}

/// Those of the map, and over them those that have a column of their own. The inner error is the row's.
fn headers(
    plan: &Plan,
    texts: &Texts<'_>,
    row: &Row,
) -> Result<Result<Headers, String>, StoreError> {
    let unreadable = || Ok(Err(plan.table.encoding.problem("headers")));
    let map = match texts.get(row, "header_map")? {
        Some(Text::Bytes(_)) => return unreadable(),
        map => map.map(Text::shown).filter(|text| !text.trim().is_empty()),
    };
    let map = map.as_deref().map(serde_json::from_str::<BTreeMap<String, Value>>);
    let mut headers = match map {
        None => Headers::new(),
        Some(Ok(map)) => map.into_iter().filter_map(header).collect(),
        Some(Err(_)) => return Ok(Err("its headers are no JSON object".to_owned())),
    };
    for ((name, _), value) in plan.headers.iter().zip(texts.get_all(row, "header_values")?) {
        match value {
            Some(Text::Read(value)) if !value.is_empty() => headers.set(name, value),
            Some(Text::Bytes(_)) => return unreadable(),
            _ => {}
        }
    }
    if plan.key_orders_only {
        headers.set(KEY_USE, ORDER_ONLY);
    }
    let default = match plan.payload_kind {
        PayloadKind::Json => None,
        PayloadKind::Text => Some("text/plain"),
        PayloadKind::Bytes => Some("application/octet-stream"),
    };
    if let Some(default) = default.filter(|_| headers.get("content-type").is_none()) {
        headers.set("content-type", default);
    }
    Ok(Ok(headers))
}

fn header((name, value): (String, Value)) -> Option<(String, String)> {
    match value {
        Value::Null => None,
        Value::String(text) => Some((name, text)),
        other => Some((name, other.to_string())),
    }
}

/// Without the name of the operation, which is publishing.
fn in_short(error: &StoreError) -> String {
    let text = error.to_string();
    text.split_once(": ").map_or(text.clone(), |(_, problem)| problem.to_owned())
}
