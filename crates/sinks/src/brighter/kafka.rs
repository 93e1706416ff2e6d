//! A record of Kafka: its key and its headers.

use super::{Message, time};

/// The key and the headers of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Empty if the message has no partition key.
    pub key: &'a str,
    /// Consumers look for the first of a name, in any case, and reject records with two of them.
    pub headers: Vec<(String, String)>,
}

/// The record of a message, but for its value, which is the body.
pub fn record<'a>(message: &Message<'a>) -> Record<'a> {
    let mut headers = known(message);
    for (name, value) in message.bag.values() {
        let is_new = headers.iter().all(|(taken, _)| !taken.eq_ignore_ascii_case(name));
        if let Some(text) = value.as_text().filter(|_| is_new) {
            headers.push((name.to_owned(), text));
        }
    }
    Record { key: message.partition_key.unwrap_or_default(), headers }
}

fn known(message: &Message<'_>) -> Vec<(String, String)> {
    let (timestamp, time) = (time::invariant(message.timestamp), message.time());
    let always = [
        ("MessageType", message.message_type),
        ("Topic", message.topic),
        ("MessageId", message.id),
        ("TimeStamp", &timestamp),
        ("x-delay", "0"),
        ("HandledCount", "0"),
        ("ce_id", message.id),
        ("ce_specversion", message.spec_version),
        ("ce_type", message.event_type),
        ("ce_source", message.source),
        ("ce_time", &time),
    ];
    let if_any = [
        ("ContentType", Some(message.content_type)),
        ("content-type", Some(message.content_type)),
        ("CorrelationId", message.correlation_id),
        ("PartitionKey", message.partition_key),
        ("ReplyTo", message.reply_to),
        ("ce_subject", message.subject),
        ("ce_dataschema", message.data_schema),
        ("ce_traceparent", message.trace_parent),
        ("ce_tracestate", message.trace_state),
        ("baggage", Some(message.baggage.as_str()).filter(|it| !it.is_empty())),
    ];
    let if_any = if_any.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let headers = always.into_iter().chain(if_any);
    headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
