//! Topics of a server that plays SNS, read through queues that have subscribed to them.

use crate::{
    brokers::{declared, item, secrets, send, verdicts},
    moto::{REGION, arrived, moto, subscribed, topic},
    sqs::KEYS,
};
use tidegate_core::{
    Headers,
    sink::{Item, Outcome, Sink, Verdict},
};
use tidegate_sinks::sns::{Config, Sns};

fn sink(topic: &str) -> Sns {
    let config = format!("endpoint = 'http://{}'\ntopic = '{topic}'\n{KEYS}", moto());
    Sns::new(&declared::<Config>(&config), &secrets).unwrap()
}

#[tokio::test]
async fn a_subscriber_gets_all_that_an_item_has() {
    let topic = topic("all").await;
    let queue = subscribed(&topic, "all").await;
    let own = Headers::from_iter([("content-type", "text/plain")]);
    let full = Item { headers: &own, payload: b"plain", ..item("m1", "orders", Some("k")) };
    let bytes = Item { payload: b"\x00\xff", ..item("m2", "orders", None) };
    let sink = sink(&topic);
    sink.check().await.unwrap();
    assert_eq!(verdicts(&sink, &[full, bytes]).await, [Verdict::Done, Verdict::Done]);
    let mut found = arrived(&queue).await;
    found.sort_by_key(|it| it.attributes["id"].clone());
    let [full, bytes] = found.as_slice() else { panic!("{found:?}") };
    let pairs: Vec<_> = full.attributes.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let expected = [
        ("content-type", "text/plain"),
        ("id", "m1"),
        ("tidegate-key", "k"),
        ("tidegate-topic", "orders"),
    ];
    assert_eq!((full.body.as_str(), pairs.as_slice()), ("plain", &expected[..]));
    assert_eq!(
        (bytes.body.as_str(), bytes.attributes["tidegate-encoding"].as_str()),
        ("AP8=", "base64")
    );
}

#[tokio::test]
async fn a_fifo_topic_gets_groups_and_ids() {
    let topic = topic("order.fifo").await;
    let queue = subscribed(&topic, "order.fifo").await;
    let items =
        [item("m1", "t", Some("a")), item("m2", "t", Some("b")), item("m3", "t", Some("a"))];
    assert_eq!(verdicts(&sink(&topic), &items).await, vec![Verdict::Done; 3]);
    let found = arrived(&queue).await;
    let of = |group: &str| {
        let of_group = found.iter().filter(|it| it.group.as_deref() == Some(group));
        of_group.map(|it| it.deduplication.clone().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((of("a"), of("b")), (vec!["m1".to_owned(), "m3".to_owned()], vec!["m2".to_owned()]));
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_named() {
    let missing = format!("arn:aws:sns:{REGION}:123456789012:none");
    let error = sink(&missing).check().await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("the topic {missing} does not exist in {REGION}")),
        "{error}"
    );
    let several = sink(&missing.replace("none", "{topic}"));
    several.check().await.unwrap();
    let Outcome::Broken(problem) = send(&several, &[item("1", "none", None)]).await else {
        panic!()
    };
    assert!(problem.contains("correct `topic` or `region`"), "{problem}");
    assert_eq!(several.destination(&item("1", "none", None)), Some(missing));
}
