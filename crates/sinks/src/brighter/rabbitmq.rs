//! A message of RabbitMQ: its properties and its headers.

use super::{Message, Value};

/// The content type that Brighter gives a body which it has read from an outbox.
const BODY_TYPE: &str = "application/json; charset=utf-8";

/// Bag entries that consumers would take for something else.
const NOT_SENT: [&str; 6] =
    ["x-delay", "MessageType", "Topic", "HandledCount", "DeliveryTag", "CorrelationId"];

/// Headers that RabbitMQ reads itself, and refuses unless they are lists.
const ROUTES: [&str; 2] = ["CC", "BCC"];

/// What stands before the names of CloudEvents' attributes: for Brighter's package, and for its Sync package. Neither
/// reads the names of the other.
const PREFIXES: [(&str, &[&str]); 2] = [
    ("cloudEvents_", &["cloudevents_tracestate", "cloudevents_:tracestate"]),
    ("cloudEvents:", &["cloudevents:tracestate"]),
];

/// All properties but the delivery mode, which is the sink's.
#[derive(Clone, Debug, PartialEq)]
pub struct Properties<'a> {
    /// `message_id`
    pub message_id: &'a str,
    /// `content_type`
    pub content_type: &'a str,
    /// `type`
    pub kind: &'static str,
    /// `timestamp`, in seconds since 1970.
    pub timestamp: u64,
    /// `reply_to`
    pub reply_to: Option<&'a str>,
    /// Names in exactly this case. Texts are long strings.
    pub headers: Vec<(String, Value)>,
}

/// The properties of a message, or why RabbitMQ would not take it.
pub fn properties<'a>(message: &Message<'a>) -> Result<Properties<'a>, String> {
    let mut headers = known(message);
    for (name, value) in message.bag.values() {
        let is_taken = NOT_SENT.contains(&name) || headers.iter().any(|(taken, _)| taken == name);
        if is_taken || value == Value::Nothing {
            continue;
        }
        if ROUTES.contains(&name) && !matches!(value, Value::List(_)) {
            return Err(format!(
                "RabbitMQ reads the header `{name}` itself, and wants a list there"
            ));
        }
        headers.push((name.to_owned(), value));
    }
    Ok(Properties {
        message_id: message.id,
        content_type: message.content_type,
        kind: BODY_TYPE,
        timestamp: message.timestamp.as_second().try_into().unwrap_or_default(),
        reply_to: message.reply_to,
        headers,
    })
}

fn known(message: &Message<'_>) -> Vec<(String, Value)> {
    let mut headers = Vec::new();
    let mut add = |name: String, value: &str| headers.push((name, Value::Text(value.to_owned())));
    add("MessageType".to_owned(), message.message_type);
    add("Topic".to_owned(), message.topic);
    if let Some(id) = message.correlation_id {
        add("CorrelationId".to_owned(), id);
    }
    let time = message.time();
    for (prefix, trace_states) in PREFIXES {
        let always = [
            ("id", message.id),
            ("specversion", message.spec_version),
            ("type", message.event_type),
            ("source", message.source),
            ("time", &time),
        ];
        let if_any = [
            ("subject", message.subject),
            ("dataschema", message.data_schema),
            ("traceparent", message.trace_parent),
        ];
        let if_any = if_any.into_iter().filter_map(|(name, value)| Some((name, value?)));
        for (name, value) in always.into_iter().chain(if_any) {
            add(format!("{prefix}{name}"), value);
        }
        for name in trace_states {
            message.trace_state.into_iter().for_each(|state| add((*name).to_owned(), state));
        }
    }
    if !message.baggage.is_empty() {
        add("baggage".to_owned(), &message.baggage);
    }
    headers.push(("HandledCount".to_owned(), Value::Int(0)));
    headers
}
