use super::{
    item,
    sqs::{BAG, full, pairs},
};
use crate::{
    brokers::{declared, secrets, verdicts},
    moto::{arrived, moto, subscribe, topic},
    sqs::KEYS,
};
use serde_json::Value;
use std::collections::BTreeMap;
use tidegate_core::{
    Headers,
    sink::{Item, Verdict},
};
use tidegate_sinks::sns::{Config, Sns};

/// The attributes of CloudEvents of the full message: no id, as SQS has it.
const EVENTS: &str = concat!(
    r#"{"datacontenttype":"application/json; charset=utf-8","dataschema":"","#,
    r#""specversion":"1.0","type":"shop.order.placed","souce":"http://goparamore.io","#,
    r#""time":"2026-01-02T03:04:05.678Z","baggage":"","subject":"order/7","tracestate":"a=b"}"#
);

fn sink(topic: &str) -> Sns {
    let config =
        format!("endpoint = 'http://{}'\ntopic = '{topic}'\nenvelope = 'brighter'\n{KEYS}", moto());
    Sns::new(&declared::<Config>(&config), &secrets).unwrap()
}

fn expected(topic: &str) -> [(&str, &str); 9] {
    [
        ("bag", BAG),
        ("cloudeventheaders", EVENTS),
        ("content-type", "application/json; charset=utf-8"),
        ("correlation-id", "c-1"),
        ("id", "m-1"),
        ("message-type", "MT_COMMAND"),
        ("reply-to", "replies"),
        ("timestamp", "2026-01-02T03:04:05.678Z"),
        ("topic", topic),
    ]
}

#[tokio::test]
async fn sns_carries_what_consumers_read_raw_or_not() {
    let topic = topic("brighter").await;
    let raw = subscribe(&topic, "raw", true).await;
    let wrapped = subscribe(&topic, "wrapped", false).await;
    let own = full();
    let items = [item("m-1", "orders", &own)];
    assert_eq!(verdicts(&sink(&topic), &items).await, [Verdict::Done]);

    let found = arrived(&raw).await;
    let [message] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(message.body, r#"{"n":1}"#);
    assert_eq!(pairs(&message.attributes), expected(&topic));

    let found = arrived(&wrapped).await;
    let [message] = found.as_slice() else { panic!("{found:?}") };
    let told: Value = serde_json::from_str(&message.body).unwrap();
    assert_eq!((&told["Message"], &told["Subject"]), (&r#"{"n":1}"#.into(), &"order/7".into()));
    assert_eq!(told["TopicArn"], topic.as_str());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let attributes = told["MessageAttributes"].as_object().unwrap().iter();
    let attributes: BTreeMap<String, String> = attributes
        .inspect(|(name, it)| assert_eq!(it["Type"], "String", "{name}"))
        .map(|(name, it)| (name.clone(), text(&it["Value"])))
        .collect();
    assert_eq!(pairs(&attributes), expected(&topic));
}

#[tokio::test]
async fn a_subject_that_sns_refuses_is_left_out_and_the_message_arrives() {
    let topic = topic("brighter").await;
    let wrapped = subscribe(&topic, "wrapped", false).await;
    let headers = Headers::from_iter([("ce-subject", "x".repeat(101))]);
    assert_eq!(verdicts(&sink(&topic), &[item("m-1", "t", &headers)]).await, [Verdict::Done]);
    let told: Value = serde_json::from_str(&arrived(&wrapped).await[0].body).unwrap();
    assert_eq!(told.get("Subject"), None);
    let events = told["MessageAttributes"]["cloudeventheaders"]["Value"].as_str().unwrap();
    let events: Value = serde_json::from_str(events).unwrap();
    assert_eq!(events["subject"], "x".repeat(101));
}

#[tokio::test]
async fn a_fifo_topic_gets_partition_keys_and_the_ids_that_applications_chose() {
    let topic = topic("brighter.fifo").await;
    let queue = subscribe(&topic, "brighter.fifo", true).await;
    let (none, mut chosen) = (Headers::new(), Headers::new());
    chosen.set_further(r#"{"messageDeduplicationId":"once"}"#, &[]).unwrap();
    let odd = Headers::from_iter([("content-type", "odd")]);
    let items = [
        item("m-1", "orders", &none),
        Item { key: Some("l"), ..item("m-2", "orders", &chosen) },
        Item { key: Some("m"), ..item("m-3", "orders", &odd) },
    ];
    let verdicts = verdicts(&sink(&topic), &items).await;
    assert_eq!(verdicts[..2], [Verdict::Done, Verdict::Done]);
    assert!(matches!(&verdicts[2], Verdict::Dead(why) if why.contains("`odd`")), "{verdicts:?}");
    let ids = |it: crate::moto::Arrived| {
        [it.attributes["id"].clone(), it.group.unwrap(), it.deduplication.unwrap()]
    };
    let mut found: Vec<_> = arrived(&queue).await.into_iter().map(ids).collect();
    found.sort();
    assert_eq!(found, [["m-1", "k", "m-1"], ["m-2", "l", "once"]]);
}
