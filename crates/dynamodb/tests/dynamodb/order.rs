//! Order per key, with indexes that lag and requests that fail.

use crate::{
    fixture::{Fixture, Running, drain, message, recorder},
    leases::until,
    sink::{Behaviour, Recorder},
};
use std::time::Duration;
use tidegate_core::{InspectOutbox, NewMessage, Publish};
use tidegate_drill::dynamodb::Faults;

#[tokio::test]
async fn an_index_that_lags_neither_reorders_nor_repeats() {
    let fixture = Fixture::new(1).await;
    fixture.faults(Faults { index_lag: Duration::from_millis(400), ..Faults::default() });
    let (store, sink) = (fixture.open("&min_age=600ms"), recorder());
    // What a lost lane makes come twice is not looked at here.
    let lease = Duration::from_secs(20);
    let relay = Running::with_lease(fixture.open("&min_age=600ms"), "a", &sink, lease);
    for round in 0..20 {
        let messages: Vec<NewMessage> =
            (0..20).map(|n| message("t", Some(&format!("k{}", n % 5)), round * 20 + n)).collect();
        store.publish(messages).await.unwrap();
    }
    until(async || sink.payloads().len() == 400).await;
    // A stop waits for marks no longer than its grace, and a slow machine needs more.
    let direct = fixture.direct();
    until(async || direct.outstanding().await.unwrap().messages == 0).await;
    relay.stop().await;
    // Whoever comes next sees messages in the indexes that are done.
    let next = Running::with_lease(fixture.open("&min_age=600ms"), "b", &sink, lease);
    store.publish(vec![message("t", Some("k0"), 1_000)]).await.unwrap();
    until(async || sink.payloads().len() == 401).await;
    next.stop().await;
    assert_eq!(sink.got().len(), 401, "none came twice");
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
}

/// One segment of a scan may be read long before another. What came in between is not taken without what came before
/// it.
#[tokio::test]
async fn parts_of_a_look_that_are_far_apart_do_not_reorder() {
    let fixture = Fixture::new(4).await;
    let direct = fixture.direct();
    let slow = [("Scan", Duration::from_millis(400))].into();
    fixture.faults(Faults { slow, ..Faults::default() });
    let (sink, store) = (recorder(), fixture.open("&min_age=50ms&scan_concurrency=8"));
    let relay = Running::start(store, "a", &sink);
    for n in 0..300 {
        direct.publish(vec![message("t", Some(&format!("k{}", n % 3)), n)]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    until(async || sink.payloads().len() == 300).await;
    relay.stop().await;
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
}

#[tokio::test]
async fn requests_that_fail_lose_nothing() {
    let fixture = Fixture::new(2).await;
    let store = fixture.open("");
    let messages: Vec<NewMessage> =
        (0..400).map(|n| message("t", Some(&format!("k{}", n % 40)), n)).collect();
    store.publish(messages).await.unwrap();
    let throttled =
        [("UpdateItem", 0.3), ("TransactWriteItems", 0.3), ("Query", 0.2), ("Scan", 0.2)];
    fixture.faults(Faults {
        throttled: throttled.into(),
        unprocessed: 0.3,
        cut_before: 0.02,
        cut_after: 0.02,
        ..Faults::default()
    });
    let fails = (0..400).step_by(9).map(|n| (n.to_string(), 1)).collect();
    let sink = Recorder::new(Behaviour { fails, ..Behaviour::default() });
    let relay = Running::with_lease(fixture.open(""), "a", &sink, Duration::from_secs(20));
    until(async || sink.payloads().len() == 400).await;
    fixture.faults(Faults::default());
    until(async || store.outstanding().await.unwrap().messages == 0).await;
    relay.stop().await;
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
    assert_eq!(sink.got().len(), 400, "the relay lived: nothing was in doubt");
}

/// As versions of Brighter write them, in shards that nobody counts.
#[tokio::test]
async fn messages_in_negative_shards_are_relayed_and_reported() {
    let fixture = Fixture::new(3).await;
    let store = fixture.open("");
    let order = message("orders", Some("42"), 1);
    let items = store.items(&[("a".to_owned(), &order)]).unwrap();
    let mut item = items[0].put().unwrap().item().clone();
    item.insert(
        "TopicShard".to_owned(),
        aws_sdk_dynamodb::types::AttributeValue::S("orders_-2".to_owned()),
    );
    let put = fixture.client().put_item().table_name(fixture.table()).set_item(Some(item));
    put.send().await.unwrap();
    let advice = store.outbox().await.unwrap().advice.unwrap();
    assert!(
        advice.problem.contains("1 messages are in shards with negative numbers"),
        "{advice:?}"
    );
    let sink = recorder();
    drain(fixture.open("&page=1"), &sink).await;
    assert_eq!(sink.got().len(), 1);
}

/// The address says that there are fewer shards than an application has.
#[tokio::test]
async fn messages_in_shards_that_nobody_tells_of_are_relayed_and_reported() {
    let fixture = Fixture::new(5).await;
    let messages: Vec<NewMessage> =
        (0..200).map(|n| message("t", Some(&format!("k{}", n % 50)), n)).collect();
    fixture.open("&shards=20").publish(messages).await.unwrap();
    assert_eq!(fixture.open("&shards=20").outbox().await.unwrap().advice, None);
    let advice = fixture.open("").outbox().await.unwrap().advice.unwrap();
    assert!(advice.problem.contains("in shards with numbers up to 19"), "{advice:?}");
    assert!(advice.advice.contains("set `shards`"), "{advice:?}");
    let sink = recorder();
    drain(fixture.open(""), &sink).await;
    assert_eq!((sink.got().len(), sink.out_of_order()), (200, Vec::new()));
}
