use super::{super::attributes::Sent, *};
use proptest::prelude::*;
use std::collections::HashSet;

fn with_bag(bag: &str) -> Headers {
    let mut headers = Headers::from_iter([("message-type", "MT_EVENT")]);
    headers.set_further(bag, &[]).unwrap();
    headers
}

fn read(headers: &Headers) -> Result<Message<'_>, String> {
    Message::read(&item(headers), UNIX_EPOCH)
}

fn sent<'a>(headers: &'a Headers, body: &'a [u8]) -> Result<Sent<'a>, String> {
    let item = Item { payload: body, ..item(headers) };
    sqs::message(&Message::read(&item, UNIX_EPOCH)?, QUEUE)
}

/// Consumers put headers that they know into the bag as well, and applications pass bags on.
#[test]
fn a_bag_never_speaks_for_the_message() {
    let headers = with_bag(
        r#"{"MessageType":"MT_QUIT","Topic":"x","HandledCount":9,"DeliveryTag":1,"x-delay":5,
            "CorrelationId":"old","cloudEvents_id":"old","message-type":"MT_QUIT","reply-to":"old",
            "CE_ID":"old","partitionkey":"old","traceparent":"old"}"#,
    );
    let message = read(&headers).unwrap();
    assert_eq!((message.message_type, message.reply_to, message.trace_parent), {
        ("MT_EVENT", None, None)
    });
    let headers = rabbitmq::properties(&message).unwrap().headers;
    let of = |name: &str| headers.iter().filter(|it| it.0 == name).collect::<Vec<_>>();
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(of("cloudEvents_id"), [&("cloudEvents_id".to_owned(), text(ID))]);
    assert_eq!(of("HandledCount"), [&("HandledCount".to_owned(), Value::Int(0))]);
    for name in ["DeliveryTag", "x-delay", "CorrelationId"] {
        assert!(of(name).is_empty(), "{name}");
    }
    assert_eq!(of("reply-to"), [&("reply-to".to_owned(), text("old"))], "its own name is free");
    let record = kafka::record(&message);
    let of =
        |name: &str| record.headers.iter().filter(|it| it.0.eq_ignore_ascii_case(name)).count();
    for name in ["ce_id", "PartitionKey", "x-delay", "HandledCount", "MessageType", "Topic"] {
        assert_eq!(of(name), 1, "{name}");
    }
}

#[test]
fn other_headers_are_a_bag_of_texts() {
    let headers = Headers::from_iter([("X-Tenant", "eu"), ("Message-Type", "MT_DOCUMENT")]);
    let message = read(&headers).unwrap();
    assert_eq!(message.message_type, "MT_DOCUMENT");
    assert_eq!(message.bag.to_json(&[]), r#"{"X-Tenant":"eu"}"#);
}

#[test]
fn what_consumers_would_reject_is_told() {
    let refused = |name: &str, value: &str| read(&Headers::from_iter([(name, value)])).unwrap_err();
    for word in ["mt_event", "MT_FOO", "EVENT"] {
        assert!(refused("message-type", word).contains("use MT_COMMAND, MT_EVENT or MT_DOCUMENT"));
    }
    for text in ["json", "/", "a/b; c", "a b/c", "text/plain; charset="] {
        assert!(refused("content-type", text).contains("is no media type"), "{text}");
    }
    for text in ["text/plain", "application/vnd.a+json; charset=\"utf-8\"; v=1"] {
        assert!(read(&Headers::from_iter([("content-type", text)])).is_ok(), "{text}");
    }
}

#[test]
fn what_only_decorates_a_message_is_left_out_if_it_cannot_be_read() {
    let headers = Headers::from_iter([("baggage", "a=1,b"), ("ce-dataschema", "order.json")]);
    let message = read(&headers).unwrap();
    assert_eq!((message.baggage.as_str(), message.data_schema), ("a=1", None));
}

#[test]
fn rabbitmq_routes_by_lists_only() {
    let headers = with_bag(r#"{"CC":"audit"}"#);
    let error = rabbitmq::properties(&read(&headers).unwrap()).unwrap_err();
    assert_eq!(error, "RabbitMQ reads the header `CC` itself, and wants a list there");
    let headers = with_bag(r#"{"CC":["audit"]}"#);
    assert!(rabbitmq::properties(&read(&headers).unwrap()).is_ok());
}

#[test]
fn redis_takes_one_line() {
    let frame = |payload: &[u8]| {
        let item = Item { payload, ..item(Headers::none()) };
        redis::frame(&Message::read(&item, UNIX_EPOCH).unwrap())
    };
    for payload in ["{\n}", "a\r", "a\n"] {
        assert!(frame(payload.as_bytes()).unwrap_err().contains("several lines"));
    }
    assert!(frame(b"\xff").unwrap_err().contains("no UTF-8 text"));
    assert_eq!(frame("ä".as_bytes()).unwrap().lines().nth(4), Some("ä"));
}

#[test]
fn bodies_on_aws_are_text() {
    let gzip = Headers::from_iter([("content-type", "application/gzip")]);
    assert_eq!(sent(&gzip, b"\x1f\x8b\x08").unwrap().body, "H4sI");
    assert_eq!(sent(&gzip, b"H4sI").unwrap().body, "H4sI", "it was in Base64 before");
    let plain = Headers::new();
    assert!(sent(&plain, b"\xff").unwrap_err().contains("no UTF-8 text"));
}

#[test]
fn the_bag_may_choose_the_deduplication_id() {
    let headers = with_bag(r#"{"messageDeduplicationId":"d-1"}"#);
    let sent = sent(&headers, b"x").unwrap();
    assert_eq!(sent.deduplication_id.as_deref(), Some("d-1"));
}

proptest! {
    /// Whatever is in a bag, no name is sent twice, and the message's own names are its own.
    #[test]
    fn names_are_unique(
        names in prop::collection::vec("(MessageType|topic|ce_id|baggage|x|X|[a-zA-Z_:-]{0,6})", 0..12),
    ) {
        let members: Vec<String> = names.iter().map(|name| format!("\"{name}\":1")).collect();
        let headers = with_bag(&format!("{{{}}}", members.join(",")));
        let message = read(&headers).unwrap();
        let record = kafka::record(&message);
        let lower: HashSet<String> =
            record.headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        prop_assert_eq!(lower.len(), record.headers.len());
        let properties = rabbitmq::properties(&message);
        let sent = properties.unwrap().headers;
        let unique: HashSet<&String> = sent.iter().map(|(name, _)| name).collect();
        prop_assert_eq!(unique.len(), sent.len());
        let value = serde_json::from_str::<serde_json::Value>(&message.bag.to_json(&[]));
        let kept: HashSet<&String> = names.iter().collect();
        prop_assert_eq!(value.unwrap().as_object().unwrap().len(), kept.len());
    }
}
