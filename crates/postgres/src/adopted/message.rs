//! A row becomes a message, or turns out to be none.

use super::{
    encoding::{self, Text, Texts},
    mapping::PayloadKind,
    resolve::Plan,
};
use crate::decode::get;
use tidegate_core::{
    Headers, Message, NewMessage, Position, StoreError,
    headers::{CONTENT_TYPE, KEY_USE, NoObject, ORDER_ONLY},
    outbox::{KeyHash, LANES, Lane, Origin},
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
        let checked = message.check_stored(plan.takes_any_payload);
        let problem = problem.or_else(|| checked.err().map(|error| in_short(&error)));
        Ok(Self {
            row_key: get(OPERATION, row, "row_key")?,
            published_ms: get(OPERATION, row, "published_ms")?,
            message,
            problem,
        })
    }

    /// What is no message is damaged: no sink gets it.
    pub(super) fn message(self, position: Position, origin: Origin) -> Message {
        let key = self.message.key.as_deref();
        let lane = lane(KeyHash::of(key.unwrap_or(&self.row_key)));
        let NewMessage { topic, key, payload, headers, .. } = self.message;
        Message {
            id: position.into(),
            position,
            name: self.row_key,
            lane,
            topic,
            key,
            headers,
            payload,
            published_ms: self.published_ms,
            origin,
            damage: self.problem,
        }
    }
}

/// The lane of a key. A row without one goes by its own name: any lane will do, as one relay has all of them.
pub(super) fn lane(key: KeyHash) -> Lane {
    Lane((key.0 as u64 % u64::from(LANES)) as u16)
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
    let mut headers = Headers::new();
    for ((name, _), value) in plan.headers.iter().zip(texts.get_all(row, "header_values")?) {
        match value {
            Some(Text::Read(value)) if !value.is_empty() => headers.set(name, value),
            Some(Text::Bytes(_)) => return unreadable(),
            _ => {}
        }
    }
    let map = match texts.get(row, "header_map")? {
        Some(Text::Bytes(_)) => return unreadable(),
        map => map.map(Text::shown),
    };
    let map = map.as_deref().map(str::trim).filter(|map| !map.is_empty() && *map != "null");
    if let Some(Err(NoObject)) = map.map(|map| headers.set_further(map, plan.local_headers)) {
        return Ok(Err("its headers are no JSON object".to_owned()));
    }
    add_defaults(plan, &mut headers);
    Ok(Ok(headers))
}

fn add_defaults(plan: &Plan, headers: &mut Headers) {
    for (name, value) in plan.default_headers {
        if headers.get_own(name).is_none() {
            headers.set(name, *value);
        }
    }
    if plan.key_orders_only {
        headers.set(KEY_USE, ORDER_ONLY);
    }
    let media_type = match plan.payload_kind {
        PayloadKind::Json => None,
        PayloadKind::Text => Some("text/plain"),
        PayloadKind::Bytes => Some("application/octet-stream"),
    };
    if let Some(media_type) = media_type.filter(|_| headers.get(CONTENT_TYPE).is_none()) {
        headers.set(CONTENT_TYPE, media_type);
    }
}

/// Without the name of the operation, which is publishing.
fn in_short(error: &StoreError) -> String {
    let text = error.to_string();
    text.split_once(": ").map_or(text.clone(), |(_, problem)| problem.to_owned())
}
