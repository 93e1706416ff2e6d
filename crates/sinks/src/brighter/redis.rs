//! A frame: what Redis keeps of a message under a key of its own.

use super::{Message, bag::object};

/// The frame of a message, or why consumers would see no message in it.
pub fn frame(message: &Message<'_>) -> Result<String, String> {
    let Ok(body) = str::from_utf8(message.body) else {
        return Err("its payload is no UTF-8 text, and consumers read it as text".to_owned());
    };
    if body.contains(['\n', '\r']) {
        let reason =
            "its payload has several lines, and consumers would see no message: write it in one";
        return Err(reason.to_owned());
    }
    let header = header(message);
    Ok(["<HEADER ", &header, " HEADER/>", "<BODY", body, "BODY/>"].join("\n"))
}

fn header(message: &Message<'_>) -> String {
    let (time, bag) = (message.time(), message.bag.to_json(&[]));
    let always = [
        ("Id", message.id),
        ("TimeStamp", &time),
        ("Topic", message.topic),
        ("MessageType", message.message_type),
        ("HandledCount", "0"),
        ("DelayedMilliseconds", "0"),
        ("Bag", &bag),
        ("ReplyTo", message.reply_to.unwrap_or_default()),
        ("ContentType", message.content_type),
        ("CorrelationId", message.correlation_id.unwrap_or_default()),
        ("cloudevents:source", message.source),
        ("cloudevents:type", message.event_type),
        ("cloudevents:baggage", &message.baggage),
    ];
    let if_any = [
        ("cloudevents:dataschema", message.data_schema),
        ("cloudevents:subject", message.subject),
        ("cloudevents:traceparent", message.trace_parent),
        ("cloudevents:tracestate", message.trace_state),
    ];
    let if_any = if_any.into_iter().filter_map(|(name, value)| Some((name, value?)));
    object(&always.into_iter().chain(if_any).collect::<Vec<_>>())
}
