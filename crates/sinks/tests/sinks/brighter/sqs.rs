use super::{headers, item};
use crate::{
    brokers::{declared, secrets, verdicts},
    moto::{Arrived, arrived, moto, queue},
    sqs::KEYS,
};
use std::collections::BTreeMap;
use tidegate_core::{
    Headers,
    sink::{Item, Verdict},
};
use tidegate_sinks::sqs::{Config, Sqs};

/// What the bag of the full message is in JSON.
pub const BAG: &str = concat!(
    r#"{"SessionId":"s-1","tries":3,"price":1.50,"urgent":true,"tags":["a",1],"at":{"x":1},"#,
    r#""handled-count":"0"}"#
);

fn sink(queue: &str, rest: &str) -> Sqs {
    let config = format!(
        "endpoint = 'http://{}'\nqueue = '{queue}'\nenvelope = 'brighter'\n{KEYS}\n{rest}",
        moto()
    );
    Sqs::new(&declared::<Config>(&config), &secrets).unwrap()
}

/// What a row says that has all there is.
pub fn full() -> Headers {
    let mut headers = headers();
    headers.set("ce-subject", "order/7");
    headers
}

pub fn pairs(arrived: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    arrived.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// What arrived, by id.
fn by_id(found: Vec<Arrived>) -> BTreeMap<String, Arrived> {
    found.into_iter().map(|it| (it.attributes["id"].clone(), it)).collect()
}

#[tokio::test]
async fn sqs_carries_what_consumers_read() {
    let queue = queue("brighter").await;
    let (own, none) = (full(), Headers::new());
    let items = [item("m-1", "orders", &own), Item { key: None, ..item("m-2", "orders", &none) }];
    assert_eq!(verdicts(&sink(&queue, ""), &items).await, [Verdict::Done, Verdict::Done]);
    let found = by_id(arrived(&queue).await);
    let expected = [
        ("bag", BAG),
        (
            "cloudeventheaders",
            concat!(
                r#"{"datacontenttype":"application/json; charset=utf-8","dataschema":"","#,
                r#""specversion":"1.0","type":"shop.order.placed","souce":"http://goparamore.io","#,
                r#""time":"2026-01-02T03:04:05.678Z","baggage":"","id":"m-1","#,
                r#""subject":"order/7","tracestate":"a=b"}"#
            ),
        ),
        ("content-type", "application/json; charset=utf-8"),
        ("correlation-id", "c-1"),
        ("id", "m-1"),
        ("message-type", "MT_COMMAND"),
        ("reply-to", "replies"),
        ("subject", "order/7"),
        ("timestamp", "2026-01-02T03:04:05.678Z"),
        ("topic", queue.as_str()),
    ];
    assert_eq!(pairs(&found["m-1"].attributes), expected);
    assert_eq!((found["m-1"].body.as_str(), &found["m-1"].group), (r#"{"n":1}"#, &None));
    let bare = [
        ("bag", r#"{"handled-count":"0"}"#),
        (
            "cloudeventheaders",
            concat!(
                r#"{"datacontenttype":"text/plain","dataschema":"","specversion":"1.0","type":"","#,
                r#""souce":"http://goparamore.io","time":"2026-01-02T03:04:05.678Z","baggage":"","#,
                r#""id":"m-2"}"#
            ),
        ),
        ("content-type", "text/plain"),
        ("id", "m-2"),
        ("message-type", "MT_EVENT"),
        ("timestamp", "2026-01-02T03:04:05.678Z"),
        ("topic", queue.as_str()),
    ];
    assert_eq!(pairs(&found["m-2"].attributes), bare);
}

#[tokio::test]
async fn a_fifo_queue_gets_partition_keys_and_the_ids_that_applications_chose() {
    let queue = queue("brighter.fifo").await;
    let (none, mut chosen) = (Headers::new(), Headers::new());
    chosen.set_further(r#"{"messageDeduplicationId":"once"}"#, &[]).unwrap();
    let items = [
        item("m-1", "orders", &none),
        Item { key: Some("l"), ..item("m-2", "orders", &chosen) },
        Item { key: Some("l"), ..item("m-3", "orders", &chosen) },
        Item { key: None, ..item("m-4", "orders", &none) },
    ];
    assert_eq!(verdicts(&sink(&queue, ""), &items).await, vec![Verdict::Done; 4]);
    let mut found: Vec<_> = arrived(&queue)
        .await
        .into_iter()
        .map(|it| [it.attributes["id"].clone(), it.group.unwrap(), it.deduplication.unwrap()])
        .collect();
    found.sort();
    // The application says that m-3 is what m-2 was, so the queue leaves it out.
    assert_eq!(found, [["m-1", "k", "m-1"], ["m-2", "l", "once"], ["m-4", "m-4", "m-4"]]);
}

#[tokio::test]
async fn a_message_that_cannot_be_laid_out_is_dead_alone() {
    let queue = queue("brighter").await;
    let odd = Headers::from_iter([("message-type", "MT_ODD")]);
    let reply = Headers::from_iter([("reply-to", "\u{1}")]);
    let gzip = Headers::from_iter([("content-type", "application/gzip")]);
    let none = Headers::new();
    let keyless = |id, headers| Item { key: None, ..item(id, "orders", headers) };
    let items = [
        keyless("m-1", &none),
        keyless("m-2", &odd),
        keyless("m-3", &reply),
        Item { payload: b"\xff", ..keyless("m-4", &none) },
        Item { payload: b"\x1f\x8b", ..keyless("m-5", &gzip) },
        Item { payload: b"", ..keyless("m-6", &none) },
        keyless("m-7", &none),
    ];
    let verdicts = verdicts(&sink(&queue, ""), &items).await;
    for (at, why) in [(1, "`MT_ODD`"), (2, "reply-to"), (3, "no UTF-8"), (5, "empty")] {
        let verdict = &verdicts[at];
        assert!(matches!(verdict, Verdict::Dead(it) if it.contains(why)), "{verdict:?}");
    }
    let found = by_id(arrived(&queue).await);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["m-1", "m-5", "m-7"]);
    assert_eq!(found["m-5"].body, "H4s=");
}

#[tokio::test]
async fn attributes_count_for_the_size_of_a_message() {
    const LIMIT: usize = 2048;
    let queue = queue("brighter").await;
    let ids: Vec<String> = (0..30).map(|n| format!("m-{n:02}")).collect();
    let bag = |n: usize| Headers::from_iter([("note", "x".repeat(n * 97))]);
    let bags: Vec<Headers> = (0..30).map(bag).collect();
    let of = |(id, headers)| Item { key: None, ..item(id, "orders", headers) };
    let items: Vec<Item<'_>> = ids.iter().map(String::as_str).zip(&bags).map(of).collect();
    let verdicts = verdicts(&sink(&queue, &format!("max_bytes = {LIMIT}")), &items).await;
    let found = by_id(arrived(&queue).await);
    let size = |it: &Arrived| {
        let size = |(name, value): (&String, &String)| name.len() + "String".len() + value.len();
        it.body.len() + it.attributes.iter().map(size).sum::<usize>()
    };
    let smallest = size(&found["m-00"]);
    for (n, (id, verdict)) in ids.iter().zip(&verdicts).enumerate() {
        let expected = smallest + n * 97;
        assert_eq!(found.get(id).map(size), (expected <= LIMIT).then_some(expected), "{id}");
        let dead =
            format!("it is larger than SQS takes: {expected} bytes with its attributes, of 2048");
        let expected = if expected <= LIMIT { Verdict::Done } else { Verdict::Dead(dead) };
        assert_eq!(*verdict, expected);
    }
}
