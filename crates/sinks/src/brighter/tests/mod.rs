//! One message, as each transport must carry it, and what becomes of odd ones.

mod odd;

use super::{Message, Value, kafka, rabbitmq, redis, sns, sqs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_core::{Headers, sink::Item};

const ID: &str = "5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const QUEUE: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders";
const ARN: &str = "arn:aws:sns:eu-west-1:123456789012:orders";

/// 2026-01-02T03:04:05.678Z
fn time() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_767_323_045_678)
}

fn full() -> Headers {
    let mut headers = Headers::from_iter([
        ("message-type", "MT_COMMAND"),
        ("content-type", "application/json; charset=utf-8"),
        ("correlation-id", "c-1"),
        ("reply-to", "replies"),
        ("workflow-id", "w-1"),
        ("job-id", "j-1"),
        ("causation-id", "z-1"),
        ("ce-source", "https://shop.example.com"),
        ("ce-type", "shop.order.placed"),
        ("ce-subject", "order/7"),
        ("ce-dataschema", "https://shop.example.com/order.json"),
        ("dataref", "luggage/1"),
        ("traceparent", TRACE),
        ("tracestate", "congo=t61rcWkgMzE"),
        ("baggage", "userId=alice,region=eu"),
    ]);
    let bag = r#"{"SessionId":"s-1","x-tenant":"eu","tries":3,"price":1.50,"urgent":true,
        "due":"2026-02-03T04:05:06Z","paramore.brighter.ProducerTopic":"local"}"#;
    headers.set_further(bag, &[]).unwrap();
    headers
}

fn item(headers: &Headers) -> Item<'_> {
    Item {
        topic: "orders",
        key: Some("7"),
        headers,
        published_at: Some(time()),
        ..Item::record(ID, r#"{"n":1}"#)
    }
}

/// What is made of a message with everything, and of one with nothing.
fn both<T>(make: impl Fn(&Message<'_>) -> T) -> (T, T) {
    let full = full();
    let with_all = Message::read(&item(&full), UNIX_EPOCH).unwrap();
    let bare = Item { key: None, ..item(Headers::none()) };
    (make(&with_all), make(&Message::read(&bare, UNIX_EPOCH).unwrap()))
}

fn lines(headers: &[(String, String)]) -> Vec<String> {
    headers.iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

/// Properties and headers, a line each.
fn in_rabbitmq(message: &Message<'_>) -> ([String; 5], Vec<String>) {
    let made = rabbitmq::properties(message).unwrap();
    let text = |(name, value): &(String, Value)| match value {
        Value::Text(text) => format!("{name}: {text}"),
        other => format!("{name}: {other:?}"),
    };
    let sent = [
        format!("message_id={}", made.message_id),
        format!("content_type={}", made.content_type),
        format!("type={}", made.kind),
        format!("timestamp={}", made.timestamp),
        format!("reply_to={:?}", made.reply_to),
    ];
    (sent, made.headers.iter().map(text).collect())
}

#[test]
fn rabbitmq_has_names_in_their_case_for_both_packages() {
    let (full, bare) = both(in_rabbitmq);
    let properties = [
        "message_id=5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "content_type=application/json; charset=utf-8",
        "type=application/json; charset=utf-8",
        "timestamp=1767323045",
        "reply_to=Some(\"replies\")",
    ];
    assert_eq!(full.0, properties);
    let expected = [
        "MessageType: MT_COMMAND",
        "Topic: orders",
        "CorrelationId: c-1",
        "cloudEvents_id: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "cloudEvents_specversion: 1.0",
        "cloudEvents_type: shop.order.placed",
        "cloudEvents_source: https://shop.example.com",
        "cloudEvents_time: 2026-01-02T03:04:05.678Z",
        "cloudEvents_subject: order/7",
        "cloudEvents_dataschema: https://shop.example.com/order.json",
        "cloudEvents_traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cloudevents_tracestate: congo=t61rcWkgMzE",
        "cloudevents_:tracestate: congo=t61rcWkgMzE",
        "cloudEvents:id: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "cloudEvents:specversion: 1.0",
        "cloudEvents:type: shop.order.placed",
        "cloudEvents:source: https://shop.example.com",
        "cloudEvents:time: 2026-01-02T03:04:05.678Z",
        "cloudEvents:subject: order/7",
        "cloudEvents:dataschema: https://shop.example.com/order.json",
        "cloudEvents:traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cloudevents:tracestate: congo=t61rcWkgMzE",
        "baggage: userId=alice,region=eu",
        "HandledCount: Int(0)",
        "SessionId: s-1",
        "x-tenant: eu",
        "tries: Int(3)",
        "price: Number(\"1.50\")",
        "urgent: Bool(true)",
        "due: Date(\"2026-02-03T04:05:06Z\")",
    ];
    assert_eq!(full.1, expected);
    assert_eq!((&*bare.0[1], &*bare.0[4]), ("content_type=text/plain", "reply_to=None"));
    let expected = [
        "MessageType: MT_EVENT",
        "Topic: orders",
        "cloudEvents_id: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "cloudEvents_specversion: 1.0",
        "cloudEvents_type: ",
        "cloudEvents_source: http://goparamore.io",
        "cloudEvents_time: 2026-01-02T03:04:05.678Z",
        "cloudEvents:id: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "cloudEvents:specversion: 1.0",
        "cloudEvents:type: ",
        "cloudEvents:source: http://goparamore.io",
        "cloudEvents:time: 2026-01-02T03:04:05.678Z",
        "HandledCount: Int(0)",
    ];
    assert_eq!(bare.1, expected);
}

#[test]
fn kafka_has_all_as_text() {
    let (full, bare) = both(|message| {
        let made = kafka::record(message);
        (made.key.to_owned(), lines(&made.headers))
    });
    assert_eq!((&*full.0, &*bare.0), ("7", ""));
    let expected = [
        "MessageType: MT_COMMAND",
        "Topic: orders",
        "MessageId: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "TimeStamp: 01/02/2026 03:04:05",
        "x-delay: 0",
        "HandledCount: 0",
        "ce_id: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "ce_specversion: 1.0",
        "ce_type: shop.order.placed",
        "ce_source: https://shop.example.com",
        "ce_time: 2026-01-02T03:04:05.678Z",
        "ContentType: application/json; charset=utf-8",
        "content-type: application/json; charset=utf-8",
        "CorrelationId: c-1",
        "PartitionKey: 7",
        "ReplyTo: replies",
        "ce_subject: order/7",
        "ce_dataschema: https://shop.example.com/order.json",
        "ce_traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "ce_tracestate: congo=t61rcWkgMzE",
        "baggage: userId=alice,region=eu",
        "SessionId: s-1",
        "x-tenant: eu",
        "tries: 3",
        "price: 1.50",
        "urgent: True",
        "due: 02/03/2026 04:05:06",
    ];
    assert_eq!(full.1, expected);
    let expected = [
        "MessageType: MT_EVENT",
        "Topic: orders",
        "MessageId: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "TimeStamp: 01/02/2026 03:04:05",
        "x-delay: 0",
        "HandledCount: 0",
        "ce_id: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "ce_specversion: 1.0",
        "ce_type: ",
        "ce_source: http://goparamore.io",
        "ce_time: 2026-01-02T03:04:05.678Z",
        "ContentType: text/plain",
        "content-type: text/plain",
    ];
    assert_eq!(bare.1, expected);
}

#[test]
fn redis_has_a_frame_of_six_lines() {
    let (full, bare) = both(|message| redis::frame(message).unwrap());
    let bag = r#"{\"SessionId\":\"s-1\",\"x-tenant\":\"eu\",\"tries\":3,\"price\":1.50,\"urgent\":true,\"due\":\"2026-02-03T04:05:06Z\"}"#;
    let expected = [
        "<HEADER ",
        &format!(
            concat!(
                r#"{{"Id":"5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01","TimeStamp":"2026-01-02T03:04:05.678Z","#,
                r#""Topic":"orders","MessageType":"MT_COMMAND","HandledCount":"0","DelayedMilliseconds":"0","#,
                r#""Bag":"{bag}","ReplyTo":"replies","ContentType":"application/json; charset=utf-8","#,
                r#""CorrelationId":"c-1","cloudevents:source":"https://shop.example.com","#,
                r#""cloudevents:type":"shop.order.placed","cloudevents:baggage":"userId=alice,region=eu","#,
                r#""cloudevents:dataschema":"https://shop.example.com/order.json","cloudevents:subject":"order/7","#,
                r#""cloudevents:traceparent":"{trace}","cloudevents:tracestate":"congo=t61rcWkgMzE"}}"#,
            ),
            bag = bag,
            trace = TRACE,
        ),
        " HEADER/>",
        "<BODY",
        r#"{"n":1}"#,
        "BODY/>",
    ];
    assert_eq!(full, expected.join("\n"));
    let header = concat!(
        r#"{"Id":"5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01","TimeStamp":"2026-01-02T03:04:05.678Z","#,
        r#""Topic":"orders","MessageType":"MT_EVENT","HandledCount":"0","DelayedMilliseconds":"0","#,
        r#""Bag":"{}","ReplyTo":"","ContentType":"text/plain","CorrelationId":"","#,
        r#""cloudevents:source":"http://goparamore.io","cloudevents:type":"","cloudevents:baggage":""}"#,
    );
    assert_eq!(bare.lines().nth(1), Some(header));
}

#[test]
fn sqs_has_ten_attributes_at_most() {
    let (full, bare) = both(|message| {
        let sent = sqs::message(message, QUEUE).unwrap();
        assert_eq!((&*sent.body, sent.subject), (r#"{"n":1}"#, None));
        let lines = sent.attributes.iter().map(|(name, value)| format!("{name}: {value}"));
        (lines.collect::<Vec<_>>(), sent.group_id.map(str::to_owned), sent.deduplication_id)
    });
    let expected = [
        "id: 5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01",
        "topic: https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
        "message-type: MT_COMMAND",
        "content-type: application/json; charset=utf-8",
        "timestamp: 2026-01-02T03:04:05.678Z",
        r#"bag: {"SessionId":"s-1","x-tenant":"eu","tries":3,"price":1.50,"urgent":true,"due":"2026-02-03T04:05:06Z","handled-count":"0"}"#,
        concat!(
            r#"cloudeventheaders: {"datacontenttype":"application/json; charset=utf-8","#,
            r#""dataschema":"https://shop.example.com/order.json","specversion":"1.0","#,
            r#""type":"shop.order.placed","souce":"https://shop.example.com","#,
            r#""time":"2026-01-02T03:04:05.678Z","baggage":"userId=alice,region=eu","#,
            r#""id":"5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01","subject":"order/7","dataref":"luggage/1","#,
            r#""traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"congo=t61rcWkgMzE"}"#,
        ),
        "correlation-id: c-1",
        "reply-to: replies",
        "subject: order/7",
    ];
    assert_eq!(full, (expected.map(str::to_owned).to_vec(), Some("7".to_owned()), None));
    let events = concat!(
        r#"cloudeventheaders: {"datacontenttype":"text/plain","dataschema":"","specversion":"1.0","#,
        r#""type":"","souce":"http://goparamore.io","time":"2026-01-02T03:04:05.678Z","baggage":"","#,
        r#""id":"5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01"}"#,
    );
    assert_eq!(bare.0[5..], [r#"bag: {"handled-count":"0"}"#, events]);
}

#[test]
fn sns_has_a_subject_of_its_own() {
    let (full, bare) = both(|message| {
        let sent = sns::notification(message, ARN).unwrap();
        let names: Vec<_> = sent.attributes.iter().map(|(name, _)| *name).collect();
        let events = sent.attributes[6].1.clone();
        assert_eq!(sent.attributes[1], ("topic", ARN.to_owned()));
        (names, events, sent.subject.map(str::to_owned))
    });
    let always =
        ["id", "topic", "message-type", "content-type", "timestamp", "bag", "cloudeventheaders"];
    assert_eq!(bare.0, always);
    assert_eq!(full.0, [&always[..], &["correlation-id", "reply-to"]].concat());
    assert_eq!((full.2.as_deref(), bare.2), (Some("order/7"), None));
    let events = concat!(
        r#"{"datacontenttype":"text/plain","dataschema":"","specversion":"1.0","type":"","#,
        r#""souce":"http://goparamore.io","time":"2026-01-02T03:04:05.678Z","baggage":""}"#,
    );
    assert_eq!(bare.1, events);
}
