//! A row becomes a message, or turns out to be none.

use super::{mapping::PayloadKind, resolve::Plan, rows::lane};
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
    pub(super) fn read(plan: &Plan, row: &Row) -> Result<Self, StoreError> {
        let topic: Option<String> = get(OPERATION, row, "topic")?;
        let payload: Option<Vec<u8>> = get(OPERATION, row, "payload")?;
        let (headers, unreadable) = match headers(plan, row)? {
            Ok(headers) => (headers, None),
            Err(problem) => (Headers::new(), Some(problem)),
        };
        let message = NewMessage {
            topic: topic.clone().unwrap_or_default(),
            key: get(OPERATION, row, "key")?,
            payload: payload.unwrap_or_else(|| nothing(plan.payload_kind)),
            headers,
            delay: None,
        };
        let problem = match (topic, unreadable) {
            (None, _) => Some("its topic is null".to_owned()),
            (_, Some(problem)) => Some(problem),
            _ => message.check().err().map(|error| in_short(&error)),
        };
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
        Message { id, name, lane, topic, key, headers, payload, published_ms, origin }
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
fn headers(plan: &Plan, row: &Row) -> Result<Result<Headers, String>, StoreError> {
    let map: Option<&str> = get(OPERATION, row, "header_map")?;
    let map = map.filter(|text| !text.trim().is_empty());
    let mut headers = match map.map(serde_json::from_str::<BTreeMap<String, Value>>) {
        None => Headers::new(),
        Some(Ok(map)) => map.into_iter().filter_map(header).collect(),
        Some(Err(_)) => return Ok(Err("its headers are no JSON object".to_owned())),
    };
    let values: Vec<Option<String>> = get(OPERATION, row, "header_values")?;
    for ((name, _), value) in plan.headers.iter().zip(values) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            headers.set(name, value);
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
