//! What an application with Brighter has written arrives as Brighter's consumers read it.

use crate::world::{World, ask};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const TIME: &str = "2026-01-02T03:04:05.678Z";
/// The same as Brighter's tables have it.
const TICKS: &str = "639029198456780000";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// An item as Brighter's outbox writes it: text and numbers by name.
fn item() -> Value {
    let texts = [
        ("MessageId", "7a1c0f0e-5d6e-4a57-9d5b-0d7f3f2f8a11"),
        ("Topic", "orders"),
        // With the signed modulo that its versions have.
        ("TopicShard", "orders_-2"),
        ("PartitionKey", "42"),
        ("MessageType", "MT_COMMAND"),
        ("CorrelationId", "c-1"),
        ("ReplyTo", "replies"),
        ("ContentType", "application/json; charset=utf-8"),
        ("CharacterEncoding", "UTF8"),
        (
            "HeaderBag",
            r#"{"SessionId":"s-1","tries":3,"price":1.50,"urgent":true,"paramore.brighter.ProducerTopic":"local"}"#,
        ),
        ("CreatedAt", TIME),
        ("Source", "https://shop.example.com"),
        ("SpecVersion", "1.0"),
        ("Subject", "order/7"),
        ("Type", "shop.order.placed"),
        ("DataSchema", "https://shop.example.com/order.json"),
        ("TraceParent", TRACE),
        ("TraceState", "congo=t61rcWkgMzE"),
        ("Baggage", "userId=alice"),
    ];
    let numbers = [
        ("CreatedTime", TICKS),
        ("OutstandingCreatedTime", TICKS),
        ("HandledCount", "0"),
        ("DelayedMilliseconds", "0"),
    ];
    let mut item = json!({ "Body": { "B": "eyJuIjoxfQ==" } });
    texts.iter().for_each(|(name, value)| item[*name] = json!({ "S": value }));
    numbers.iter().for_each(|(name, value)| item[*name] = json!({ "N": value }));
    item
}

/// As SQS gives it to a consumer.
fn expected(queue: &str) -> BTreeMap<String, String> {
    let bag = r#"{"SessionId":"s-1","tries":3,"price":1.50,"urgent":true,"handled-count":"0"}"#;
    let events = concat!(
        r#"{"datacontenttype":"application/json; charset=utf-8","#,
        r#""dataschema":"https://shop.example.com/order.json","specversion":"1.0","#,
        r#""type":"shop.order.placed","souce":"https://shop.example.com","#,
        r#""time":"2026-01-02T03:04:05.678Z","baggage":"userId=alice","#,
        r#""id":"7a1c0f0e-5d6e-4a57-9d5b-0d7f3f2f8a11","subject":"order/7","#,
        r#""traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","#,
        r#""tracestate":"congo=t61rcWkgMzE"}"#,
    );
    let pairs = [
        ("id", "7a1c0f0e-5d6e-4a57-9d5b-0d7f3f2f8a11"),
        ("topic", queue),
        ("message-type", "MT_COMMAND"),
        ("content-type", "application/json; charset=utf-8"),
        ("timestamp", TIME),
        ("bag", bag),
        ("cloudeventheaders", events),
        ("correlation-id", "c-1"),
        ("reply-to", "replies"),
        ("subject", "order/7"),
    ];
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn from_dynamodb_to_sqs() {
    let moto = std::env::var("TIDEGATE_TEST_MOTO").expect("run by cargo xtask test");
    let world = World::with_tables();
    let sqs = |operation: &str, body: Value| ask(&moto, &format!("AmazonSQS.{operation}"), &body);
    let queue = sqs("CreateQueue", json!({ "QueueName": world.table }))["QueueUrl"].clone();
    let queue = queue.as_str().unwrap();
    world.settings(&format!(
        "[sinks.out]\nkind = 'sqs'\nqueue = '{queue}'\nregion = 'eu-central-1'\nendpoint = '{moto}'\n\
         allow = ['127.0.0.1']\naccess_key_id = 'key'\nsecret_access_key = {{ env = 'AWS_SECRET_ACCESS_KEY' }}\n"
    ));
    world.ask("PutItem", &json!({ "TableName": world.table, "Item": item() }));
    assert_eq!(world.json(&["relay", "--drain"])["counts"]["delivered"], 1);

    let wanted = json!({ "QueueUrl": queue, "MessageAttributeNames": ["All"] });
    let received = sqs("ReceiveMessage", wanted);
    let [message] = received["Messages"].as_array().unwrap().as_slice() else {
        panic!("{received}");
    };
    assert_eq!(message["Body"], r#"{"n":1}"#);
    let attribute = |(name, value): (&String, &Value)| {
        assert_eq!(value["DataType"], "String", "{name}");
        (name.clone(), value["StringValue"].as_str().unwrap().to_owned())
    };
    let attributes = message["MessageAttributes"].as_object().unwrap().iter();
    assert_eq!(attributes.map(attribute).collect::<BTreeMap<_, _>>(), expected(queue));

    // And its outbox is as Brighter's own mark leaves it.
    let found = world.ask("Scan", &json!({ "TableName": world.table }));
    let marked = found["Items"][0].as_object().unwrap();
    let mut before = item();
    before.as_object_mut().unwrap().remove("OutstandingCreatedTime");
    let kept =
        marked.iter().filter(|(name, _)| !["DeliveryTime", "DeliveredAt"].contains(&name.as_str()));
    let kept: Value = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    assert_eq!(kept, before);
    assert!(marked["DeliveryTime"]["N"].as_str().unwrap() > TICKS);
    assert!(marked["DeliveredAt"]["S"].as_str().unwrap().ends_with('Z'));
}
