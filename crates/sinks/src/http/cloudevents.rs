//! Messages as CloudEvents 1.0, over HTTP in its structured and its binary mode.

use super::message::{content_type, is_attribute, passed_on};
use crate::{record::quoted, time::rfc3339};
use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tidegate_core::{
    headers::{CLOUD_EVENTS, TRACEPARENT, attribute},
    sink::Item,
};

/// What the binding has encoded in headers, beside all that is not ASCII.
const UNPRINTABLE: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// An event must have a type; a record of a file has no topic.
const RECORD: &str = "tidegate.record";

/// Beside the trace's parent, and of no use without it.
const TRACESTATE: &str = "tracestate";

type Attributes = BTreeMap<String, String>;

/// The event as one JSON object.
pub fn structured(item: &Item<'_>, source: &str) -> Result<(HeaderMap, Vec<u8>), String> {
    let mut attributes = attributes(item, source)?;
    let media_type = content_type(item);
    let media_type = media_type.to_str().unwrap_or_default().to_owned();
    attributes.insert("datacontenttype".to_owned(), media_type);
    let members =
        attributes.iter().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)));
    let body = members.chain(data(item)).collect::<Vec<_>>().join(",");
    // What is about the payload's bytes is not about these.
    let mut headers = passed_on(item, |name| !is_attribute(name) && !is_about_bytes(name));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/cloudevents+json"));
    Ok((headers, format!("{{{body}}}").into_bytes()))
}

/// The payload as it is, with the event's attributes as headers.
pub fn binary(item: &Item<'_>, source: &str) -> Result<(HeaderMap, Vec<u8>), String> {
    let mut headers = passed_on(item, |name| !is_attribute(name));
    for (name, value) in attributes(item, source)? {
        let value = utf8_percent_encode(&value, UNPRINTABLE).to_string();
        let name = HeaderName::try_from(format!("{CLOUD_EVENTS}{name}"));
        // Attributes are letters and digits, and what is encoded is ASCII.
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(CONTENT_TYPE, content_type(item));
    Ok((headers, item.payload.to_vec()))
}

/// All but the data's media type, which each mode has elsewhere. What the publisher sets goes
/// before what follows from the message.
fn attributes(item: &Item<'_>, source: &str) -> Result<Attributes, String> {
    let topic = Some(item.topic).filter(|topic| !topic.is_empty());
    let time = item.published_at.and_then(rfc3339);
    let usual = [
        ("id", Some(item.id)),
        ("source", Some(source)),
        ("type", topic.or(Some(RECORD))),
        ("subject", item.key),
        ("time", time.as_deref()),
        (TRACEPARENT, item.headers.get(TRACEPARENT)),
        (TRACESTATE, item.headers.get(TRACESTATE)),
    ];
    let usual = usual.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let declared = item.headers.iter().filter_map(|(name, value)| Some((attribute(name)?, value)));
    let mut attributes = Attributes::new();
    for (name, value) in usual.chain(declared).filter(|(_, value)| !value.is_empty()) {
        if !is_name(&name) {
            return Err(format!(
                "header `{CLOUD_EVENTS}{name}` names no attribute of a CloudEvent: use lower-case \
                 letters and digits"
            ));
        }
        attributes.insert(name, value.to_owned());
    }
    attributes.remove("datacontenttype");
    attributes.insert("specversion".to_owned(), "1.0".to_owned());
    Ok(attributes)
}

fn is_about_bytes(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with("content-")
}

/// `data` is the event's, and no attribute.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !name.is_empty() && name != "data" && name.bytes().all(plain)
}

/// The member that holds the payload: JSON as it is, text as a string, all else in base64.
fn data(item: &Item<'_>) -> Option<String> {
    if item.payload.is_empty() {
        return None;
    }
    let json = || serde_json::from_slice::<&RawValue>(item.payload).ok();
    if let Some(json) = item.headers.declares_json().then(json).flatten() {
        return Some(format!("\"data\":{json}"));
    }
    let media_type = item.headers.media_type();
    let is_text = media_type.starts_with("text/") || media_type.ends_with("xml");
    Some(match item.text().ok().filter(|_| is_text) {
        Some(text) => format!("\"data\":{}", quoted(text)),
        None => format!("\"data_base64\":\"{}\"", STANDARD.encode(item.payload)),
    })
}

#[cfg(test)]
mod tests;
