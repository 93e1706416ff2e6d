//! What SQS and SNS send beside a body: attributes that are all text, ten at most.

use super::{Message, bag::object};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::borrow::Cow;

/// The bag entry by which a queue knows a message again.
const DEDUPLICATION_ID: &str = "messageDeduplicationId";

/// Media types of bodies that are compressed.
const COMPRESSED: [&str; 5] = ["gzip", "x-gzip", "deflate", "br", "brotli"];

/// The name of an attribute and its value, of the type String.
pub type Attribute = (&'static str, String);

/// All that is sent of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent<'a> {
    /// The body as text.
    pub body: Cow<'a, str>,
    /// Beside it.
    pub attributes: Vec<Attribute>,
    /// The subject field of SNS; for SQS it is an attribute.
    pub subject: Option<&'a str>,
    /// The message group id of FIFO queues and topics.
    pub group_id: Option<&'a str>,
    /// The deduplication id of FIFO queues and topics, if the application chose one.
    pub deduplication_id: Option<String>,
}

/// Which of the two services.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Sqs,
    Sns,
}

/// `place` is the queue's URL or the topic's ARN. Fails if the body is no text.
pub(super) fn sent<'a>(
    message: &Message<'a>,
    place: &str,
    service: Service,
) -> Result<Sent<'a>, String> {
    let optional = [("correlation-id", message.correlation_id), ("reply-to", message.reply_to)];
    let subject = message.subject.filter(|_| service == Service::Sqs).map(|it| ("subject", it));
    let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let (time, events) = (message.time(), events(message, service));
    let bag = message.bag.to_json(&[("handled-count", "0")]);
    let always = [
        ("id", message.id),
        ("topic", place),
        ("message-type", message.message_type),
        ("content-type", message.content_type),
        ("timestamp", &time),
        ("bag", &bag),
        ("cloudeventheaders", &events),
    ];
    let all = always.into_iter().chain(optional).chain(subject);
    Ok(Sent {
        body: body(message)?,
        attributes: all.map(|(name, value)| (name, value.to_owned())).collect(),
        subject: message.subject.filter(|_| service == Service::Sns),
        group_id: message.partition_key,
        deduplication_id: message.bag.text(DEDUPLICATION_ID),
    })
}

/// The attributes of CloudEvents as one JSON object.
fn events(message: &Message<'_>, service: Service) -> String {
    let time = message.time();
    let always = [
        ("datacontenttype", message.content_type),
        ("dataschema", message.data_schema.unwrap_or_default()),
        ("specversion", message.spec_version),
        ("type", message.event_type),
        // So spelled by those who read it.
        ("souce", message.source),
        ("time", &time),
        ("baggage", &message.baggage),
    ];
    let if_any = [
        ("id", Some(message.id).filter(|_| service == Service::Sqs)),
        ("subject", message.subject),
        ("dataref", message.data_ref),
        ("traceparent", message.trace_parent),
        ("tracestate", message.trace_state),
    ];
    let if_any = if_any.into_iter().filter_map(|(name, value)| Some((name, value?)));
    object(&always.into_iter().chain(if_any).collect::<Vec<_>>())
}

/// Bodies are text. Compressed ones are in Base64; a table with a text column has them so already.
fn body<'a>(message: &Message<'a>) -> Result<Cow<'a, str>, String> {
    let text = str::from_utf8(message.body).ok();
    if is_compressed(message.content_type) {
        let encoded = text.filter(|text| STANDARD.decode(text).is_ok());
        return Ok(encoded.map_or_else(|| STANDARD.encode(message.body).into(), Cow::Borrowed));
    }
    text.map(Cow::Borrowed)
        .ok_or_else(|| "its payload is no UTF-8 text, and consumers read it as text".to_owned())
}

fn is_compressed(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let subtype = media_type.split_once('/').map_or("", |(_, subtype)| subtype);
    COMPRESSED.iter().any(|it| it.eq_ignore_ascii_case(subtype))
}
