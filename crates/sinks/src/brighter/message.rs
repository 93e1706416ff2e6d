//! An item → a message as Brighter knows it.

use super::{bag::Bag, baggage, time};
use jiff::Timestamp;
use std::time::SystemTime;
use tidegate_core::{headers::CONTENT_TYPE, sink::Item};
use url::Url;

/// Headers that are no part of the bag.
pub(super) const KNOWN: [&str; 16] = [
    "baggage",
    "causation-id",
    "ce-dataschema",
    "ce-source",
    "ce-specversion",
    "ce-subject",
    "ce-type",
    CONTENT_TYPE,
    "correlation-id",
    "dataref",
    "job-id",
    "message-type",
    "reply-to",
    "traceparent",
    "tracestate",
    "workflow-id",
];

/// What a message can be. Applications write the first three.
const TYPES: [&str; 6] =
    ["MT_COMMAND", "MT_EVENT", "MT_DOCUMENT", "MT_NONE", "MT_UNACCEPTABLE", "MT_QUIT"];

/// Where a message comes from if it does not say.
const SOURCE: &str = "http://goparamore.io";

/// A message as Brighter knows it.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// The message id.
    pub id: &'a str,
    /// The topic.
    pub topic: &'a str,
    /// `MT_COMMAND`, `MT_EVENT` or `MT_DOCUMENT`.
    pub message_type: &'a str,
    /// The media type of the body, with its parameters.
    pub content_type: &'a str,
    /// When it was made.
    pub timestamp: Timestamp,
    /// What it belongs to.
    pub correlation_id: Option<&'a str>,
    /// Where a reply goes.
    pub reply_to: Option<&'a str>,
    /// What keeps messages in order.
    pub partition_key: Option<&'a str>,
    /// Of CloudEvents, as are the next.
    pub source: &'a str,
    /// May be empty.
    pub event_type: &'a str,
    /// Which version of CloudEvents.
    pub spec_version: &'a str,
    /// What the event is about.
    pub subject: Option<&'a str>,
    /// An absolute URI.
    pub data_schema: Option<&'a str>,
    /// Where the body is kept if it was too large.
    pub data_ref: Option<&'a str>,
    /// W3C Trace Context.
    pub trace_parent: Option<&'a str>,
    /// W3C Trace Context.
    pub trace_state: Option<&'a str>,
    /// W3C Baggage, as far as consumers can read it. May be empty.
    pub baggage: String,
    /// Whatever else an application has added.
    pub bag: Bag<'a>,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The message that an item is, or why consumers would reject it. `now` is the time of an item that has none.
    pub fn read(item: &Item<'a>, now: SystemTime) -> Result<Self, String> {
        let headers = item.headers;
        let get = |name: &str| headers.get_own(name).filter(|value| !value.is_empty());
        let timestamp = Timestamp::try_from(item.published_at.unwrap_or(now));
        let data_schema = get("ce-dataschema").filter(|it| Url::parse(it).is_ok());
        Ok(Self {
            id: item.id,
            topic: item.topic,
            message_type: message_type(get("message-type").unwrap_or("MT_EVENT"))?,
            content_type: content_type(get(CONTENT_TYPE).unwrap_or("text/plain"))?,
            timestamp: timestamp.map_err(|_| "its time is beyond the year 9999".to_owned())?,
            correlation_id: get("correlation-id"),
            reply_to: get("reply-to"),
            partition_key: item.key.filter(|key| !key.is_empty()),
            source: get("ce-source").unwrap_or(SOURCE),
            event_type: get("ce-type").unwrap_or_default(),
            spec_version: get("ce-specversion").unwrap_or("1.0"),
            subject: get("ce-subject"),
            data_schema,
            data_ref: get("dataref"),
            trace_parent: get("traceparent"),
            trace_state: get("tracestate"),
            baggage: baggage::readable(get("baggage").unwrap_or_default()),
            bag: Bag::of(headers),
            body: item.payload,
        })
    }

    /// Its time, such as `2026-01-02T03:04:05.678Z`.
    pub fn time(&self) -> String {
        time::rfc(self.timestamp)
    }
}

fn message_type(word: &str) -> Result<&str, String> {
    if TYPES.contains(&word) {
        return Ok(word);
    }
    let word = word.escape_debug();
    Err(format!(
        "its message type `{word}` is none of Brighter's, and consumers would reject it: use \
         MT_COMMAND, MT_EVENT or MT_DOCUMENT"
    ))
}

fn content_type(text: &str) -> Result<&str, String> {
    if is_media_type(text) {
        return Ok(text);
    }
    let text = text.escape_debug();
    Err(format!(
        "its content type `{text}` is no media type, and consumers would reject it: use one such as \
         application/json"
    ))
}

/// `type/subtype`, and parameters with a value each.
fn is_media_type(text: &str) -> bool {
    let mut parts = text.split(';').map(str::trim);
    let kind = parts.next().and_then(|kind| kind.split_once('/'));
    let is_kind = kind.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    let is_parameter = |part: &str| {
        part.split_once('=').is_some_and(|(name, value)| {
            let quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
            is_token(name.trim()) && (quoted || is_token(value.trim()))
        })
    };
    is_kind && parts.all(is_parameter)
}

fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}
