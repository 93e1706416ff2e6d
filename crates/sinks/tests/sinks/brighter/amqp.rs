use super::{headers, item};
use crate::brokers::{declared, secrets, server, unique, verdicts};
use lapin::{
    Connection, ConnectionProperties,
    options::{BasicGetOptions, QueueDeclareOptions},
    types::{AMQPValue, DecimalValue, FieldTable, LongString},
};
use tidegate_core::{
    Headers,
    sink::{Item, Verdict},
};
use tidegate_sinks::amqp::{Amqp, Config};

#[tokio::test]
async fn rabbitmq_carries_what_consumers_read() {
    let address = server("TIDEGATE_TEST_RABBITMQ");
    let url = format!("amqp://{address}");
    let connection = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let topic = unique("orders");
    let options = QueueDeclareOptions { durable: true, ..Default::default() };
    channel.queue_declare(topic.as_str().into(), options, FieldTable::default()).await.unwrap();

    let config: Config = declared(&format!("url = '{url}'\nenvelope = 'brighter'"));
    let sink = Amqp::new(&config, &secrets).unwrap();
    let (own, odd) = (headers(), Headers::from_iter([("message-type", "MT_ODD")]));
    let items = [item("m-1", &topic, &own), Item { key: None, ..item("m-2", &topic, &odd) }];
    let verdicts = verdicts(&sink, &items).await;
    assert_eq!(verdicts[0], Verdict::Done);
    assert!(matches!(&verdicts[1], Verdict::Dead(why) if why.contains("`MT_ODD`")), "{verdicts:?}");

    let got = channel.basic_get(topic.as_str().into(), BasicGetOptions { no_ack: true }).await;
    let message = got.unwrap().unwrap();
    assert_eq!(message.data, br#"{"n":1}"#);
    let properties = &message.properties;
    let text = |value: &Option<lapin::types::ShortString>| value.as_ref().unwrap().to_string();
    assert_eq!(text(properties.message_id()), "m-1");
    assert_eq!(text(properties.content_type()), "application/json; charset=utf-8");
    assert_eq!(text(properties.kind()), "application/json; charset=utf-8");
    assert_eq!(text(properties.reply_to()), "replies");
    assert!(properties.correlation_id().is_none());
    assert_eq!(*properties.timestamp(), Some(1_767_323_045));
    assert_eq!(*properties.delivery_mode(), Some(2));

    let sent = properties.headers().as_ref().unwrap().inner();
    let long = |text: &str| AMQPValue::LongString(LongString::from(text));
    let mut table = FieldTable::default();
    table.insert("x".into(), AMQPValue::LongInt(1));
    let mut expected = vec![
        ("CorrelationId", long("c-1")),
        ("HandledCount", AMQPValue::LongInt(0)),
        ("MessageType", long("MT_COMMAND")),
        ("SessionId", long("s-1")),
        ("Topic", long(&topic)),
        ("at", AMQPValue::FieldTable(table)),
        ("price", AMQPValue::DecimalValue(DecimalValue { scale: 2, value: 150 })),
        ("tags", AMQPValue::FieldArray(vec![long("a"), AMQPValue::LongInt(1)].into())),
        ("tries", AMQPValue::LongInt(3)),
        ("urgent", AMQPValue::Boolean(true)),
        ("cloudevents_tracestate", long("a=b")),
        ("cloudevents_:tracestate", long("a=b")),
        ("cloudevents:tracestate", long("a=b")),
    ];
    for (underscore, colon, value) in [
        ("cloudEvents_id", "cloudEvents:id", "m-1"),
        ("cloudEvents_specversion", "cloudEvents:specversion", "1.0"),
        ("cloudEvents_type", "cloudEvents:type", "shop.order.placed"),
        ("cloudEvents_source", "cloudEvents:source", "http://goparamore.io"),
        ("cloudEvents_time", "cloudEvents:time", "2026-01-02T03:04:05.678Z"),
    ] {
        expected.extend([(underscore, long(value)), (colon, long(value))]);
    }
    expected.sort_by_key(|(name, _)| *name);
    let sent: Vec<_> = sent.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    assert_eq!(sent, expected);
}
