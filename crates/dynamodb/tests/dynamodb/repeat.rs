//! A message that is written again is the same message: it is delivered once, and keeps its place.

use crate::{
    fixture::{Fixture, Running, drain, message, recorder},
    leases::until,
    sink::{Behaviour, Recorder},
};
use aws_sdk_dynamodb::types::AttributeValue;
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};
use tidegate_core::{
    InspectOutbox, NewMessage, Publish,
    outbox::{AuditLine, Selection, StuckQuery, StuckState},
};
use tidegate_drill::dynamodb::Faults;
use tidegate_dynamodb::already_published;

const ID: &str = "order-7";

/// As a caller sends it, with something of its own. Returns whether it was carried out before.
async fn publish(fixture: &Fixture, message: &NewMessage) -> bool {
    let store = fixture.open("");
    let actions = store.items(&[(ID.to_owned(), message)]).unwrap();
    let request = fixture.client().transact_write_items().set_transact_items(Some(actions));
    match request.send().await {
        Ok(_) => false,
        Err(error) => {
            assert!(already_published(&error, 0..1), "{error:?}");
            true
        }
    }
}

async fn item(fixture: &Fixture) -> HashMap<String, AttributeValue> {
    let get = fixture.client().get_item().table_name(fixture.table());
    let get = get.key("MessageId", AttributeValue::S(ID.to_owned())).consistent_read(true);
    get.send().await.unwrap().item.unwrap()
}

/// The second copy changes nothing.
async fn repeat(fixture: &Fixture, message: &NewMessage) {
    let before = item(fixture).await;
    assert!(publish(fixture, message).await, "it was there");
    assert_eq!(item(fixture).await, before);
}

fn ids(sink: &Recorder) -> Vec<String> {
    sink.got().into_iter().map(|got| got.id).collect()
}

#[tokio::test]
async fn before_it_is_delivered() {
    let fixture = Fixture::new(1).await;
    let (message, sink) = (message("t", Some("k"), 1), recorder());
    assert!(!publish(&fixture, &message).await);
    repeat(&fixture, &message).await;
    drain(fixture.open(""), &sink).await;
    assert_eq!(ids(&sink), [ID]);
}

#[tokio::test]
async fn while_it_is_delivered_and_afterwards() {
    let fixture = Fixture::new(2).await;
    let message = message("t", Some("k"), 1);
    let takes = Duration::from_millis(600);
    let sink = Recorder::new(Behaviour { takes, ..Behaviour::default() });
    assert!(!publish(&fixture, &message).await);
    let relay = Running::start(fixture.open(""), "a", &sink);
    until(async || sink.has_begun()).await;
    repeat(&fixture, &message).await;
    until(async || item(&fixture).await.contains_key("DeliveryTime")).await;
    repeat(&fixture, &message).await;
    relay.stop().await;
    drain(fixture.open(""), &sink).await;
    assert_eq!(ids(&sink), [ID]);
}

#[tokio::test]
async fn when_it_is_set_aside() {
    let fixture = Fixture::new(3).await;
    let (store, message) = (fixture.open(""), message("t", Some("k"), 1));
    let sink =
        Recorder::new(Behaviour { refuses: ["1".to_owned()].into(), ..Behaviour::default() });
    assert!(!publish(&fixture, &message).await);
    drain(fixture.open(""), &sink).await;
    repeat(&fixture, &message).await;
    let dead = StuckQuery { state: Some(StuckState::Dead), limit: 10, ..StuckQuery::default() };
    assert_eq!(store.stuck(dead).await.unwrap().len(), 1, "its record is not orphaned");
    sink.behave(Behaviour::default());
    let by = AuditLine { who: "me".to_owned(), why: "a test".to_owned(), ..AuditLine::default() };
    assert_eq!(store.retry_dead(Selection::default(), &by).await.unwrap(), 1);
    drain(fixture.open(""), &sink).await;
    assert_eq!(ids(&sink), [ID]);
    repeat(&fixture, &message).await;
}

/// The publisher never learns that its first copy was written, and a relay is fast.
#[tokio::test]
async fn when_answers_to_publish_are_lost() {
    for (seed, rounds, each) in [(4, 60, 10), (5, 1, 2_000)] {
        let fixture = Fixture::new(seed).await;
        let (store, sink) = (fixture.open(""), recorder());
        let relay = Running::start(fixture.direct(), "a", &sink);
        // What is sent again comes when the relay may have delivered the first copy.
        let latency = Duration::from_millis(150);
        fixture.faults(Faults { cut_after: 0.15, latency, ..Faults::default() });
        let mut written = BTreeSet::new();
        for round in 0..rounds {
            let messages = (0..each).map(|n| message("t", None, round * each + n)).collect();
            // After too many answers that were lost, nobody knows.
            let ids = store.publish(messages).await.unwrap_or_default();
            written.extend(ids.iter().map(ToString::to_string));
        }
        assert!(fixture.proxy.counters().total().cut > 3);
        let got = || sink.got().into_iter().map(|got| got.id).collect::<BTreeSet<_>>();
        until(async || written.is_subset(&got())).await;
        relay.stop().await;
        drain(fixture.direct(), &sink).await;
        assert_eq!(sink.got().len(), got().len(), "none came twice");
    }
}

#[tokio::test]
async fn items_that_are_left_unprocessed_for_long_do_not_reorder() {
    let fixture = Fixture::new(6).await;
    let (store, sink) = (fixture.open("&min_age=500ms"), recorder());
    let relay = Running::start(fixture.direct_with("&min_age=500ms"), "a", &sink);
    fixture.faults(Faults { unprocessed: 0.5, ..Faults::default() });
    let messages: Vec<NewMessage> =
        (0..1_000).map(|n| message("t", Some(&format!("k{}", n % 125)), n)).collect();
    store.publish(messages).await.unwrap();
    let counters = fixture.proxy.counters();
    assert!(counters.of("BatchWriteItem").unprocessed > 500, "{counters:?}");
    until(async || sink.payloads().len() == 1_000).await;
    relay.stop().await;
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
}
