//! Marks that meet with trouble.

use crate::{
    fixture::{Fixture, Running, drain, message, recorder},
    hand::{Hand, item},
    leases::until,
    sink::{Behaviour, Recorder},
};
use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use std::{collections::HashMap, time::Duration};
use tidegate_core::{
    Class, InspectOutbox, NewMessage, Publish,
    outbox::{Aside, AuditLine, OnDead, Selection},
};
use tidegate_drill::dynamodb::Faults;

const LARGEST: usize = 409_600;

/// The size of an item without its body, by DynamoDB's rules.
fn overhead(item: &HashMap<String, AttributeValue>) -> usize {
    let value = |value: &AttributeValue| match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.len().div_ceil(2) + 1,
        _ => 0,
    };
    item.iter().map(|(name, it)| name.len() + value(it)).sum()
}

/// As another program may write it: with no room left.
async fn put_full(fixture: &Fixture, id: &str, key: &str, free: usize) {
    let small = message("t", Some(key), 0);
    let actions = fixture.open("").items(&[(id.to_owned(), &small)]).unwrap();
    let mut item = actions[0].put().unwrap().item().clone();
    item.remove("Body");
    let body = vec![b'x'; LARGEST - overhead(&item) - "Body".len() - free];
    item.insert("Body".to_owned(), AttributeValue::B(Blob::new(body)));
    let put = fixture.client().put_item().table_name(fixture.table()).set_item(Some(item));
    put.send().await.unwrap();
}

/// One that cannot take all of a mark is delivered once like all others, and stops none of them.
#[tokio::test]
async fn items_without_room_are_marked_all_the_same() {
    for (seed, settings) in ["", "&ttl=1h"].into_iter().enumerate() {
        let fixture = Fixture::new(seed as u64).await;
        for free in [0, 1, 10, 20, 40, 60] {
            put_full(&fixture, &format!("full-{free}"), &format!("k{free}"), free).await;
        }
        let small: Vec<NewMessage> =
            (0..20).map(|n| message("t", Some(&format!("k{n}")), n)).collect();
        fixture.open("").publish(small).await.unwrap();
        let sink = recorder();
        drain(fixture.open(settings), &sink).await;
        assert_eq!(sink.got().len(), 26);
        for free in [0, 1, 10, 20, 40, 60] {
            let item = item(&fixture, &format!("full-{free}")).await;
            assert!(item.contains_key("DeliveryTime"), "{free}");
            assert!(!item.contains_key("OutstandingCreatedTime"), "{free}");
        }
        assert_eq!(fixture.open("").outstanding().await.unwrap().messages, 0);
    }
}

#[tokio::test]
async fn items_without_room_are_set_aside_retried_and_dropped() {
    let fixture = Fixture::new(3).await;
    let store = fixture.open("");
    for n in 0..14 {
        put_full(&fixture, &format!("full-{n}"), &format!("k{n}"), n * 3).await;
    }
    let mut hand = Hand::start(fixture.open("&ttl=1h")).await;
    let read = hand.read(14).await;
    let dead = Aside::Dead { attempts: 1, reason: "never".to_owned(), then: OnDead::Skip };
    fixture.proxy.reset_counters();
    hand.set_aside(&read, dead).await;
    let sent = fixture.proxy.counters().of("TransactWriteItems");
    assert_eq!((sent.requests, sent.refused), (2, 0), "at most 4 MB in a transaction");
    let by = AuditLine { who: "me".to_owned(), why: "a test".to_owned(), ..AuditLine::default() };
    let which = Selection {
        ids: Some(read[..3].iter().map(|it| it.id.clone()).collect()),
        ..Selection::default()
    };
    assert_eq!(store.drop_dead(which, &by).await.unwrap(), 3);
    assert_eq!(store.retry_dead(Selection::default(), &by).await.unwrap(), 11);
    hand.share().await;
    let due = hand.claim().await.due;
    assert_eq!(due.len(), 11);
    assert_eq!(hand.settle(&due.iter().collect::<Vec<_>>(), &[]).await.late, []);
    assert_eq!(store.outstanding().await.unwrap().messages, 0);
    for message in &due {
        let item = item(&fixture, &message.name).await;
        assert!(item.contains_key("DeliveryTime") && !item.contains_key("TidegateAside"));
    }
}

/// Every relay and everybody who decides writes to the same items now and then.
#[tokio::test]
async fn conflicts_are_tried_again() {
    let fixture = Fixture::new(4).await;
    let store = fixture.open("");
    let messages = (0..200).map(|n| message("t", Some(&format!("k{}", n % 20)), n)).collect();
    store.publish(messages).await.unwrap();
    let refused = [
        ("UpdateItem", ("TransactionConflictException", 0.3)),
        ("PutItem", ("TransactionConflictException", 0.3)),
        ("TransactWriteItems", ("TransactionConflict", 0.4)),
    ];
    fixture.faults(Faults { refused: refused.into(), ..Faults::default() });
    let fails = (0..200).step_by(7).map(|n| (n.to_string(), 1)).collect();
    let sink = Recorder::new(Behaviour { fails, ..Behaviour::default() });
    let relay = Running::with_lease(fixture.open(""), "a", &sink, Duration::from_secs(10));
    until(async || sink.payloads().len() == 200).await;
    until(async || store.outstanding().await.unwrap().messages == 0).await;
    // It gives back its lanes, and no error comes up.
    relay.stop().await;
    assert_eq!(sink.got().len(), 200);
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
    assert!(store.outbox().await.unwrap().relays.is_empty());
}

/// The answer was lost, and the copy came while the first one was carried out.
#[tokio::test]
async fn a_publish_that_is_still_being_carried_out_is_no_error() {
    let fixture = Fixture::new(5).await;
    let store = fixture.open("");
    let refused = [("TransactWriteItems", ("TransactionInProgressException", 0.6))].into();
    fixture.faults(Faults { refused, ..Faults::default() });
    for n in 0..10 {
        store.publish(vec![message("t", None, n)]).await.unwrap();
    }
    fixture.faults(Faults::default());
    assert_eq!(store.outstanding().await.unwrap().messages, 10);
}

#[tokio::test]
async fn credentials_that_are_replaced_do_not_end_a_relay() {
    let fixture = Fixture::new(6).await;
    let (sink, direct) = (recorder(), fixture.direct());
    let relay = Running::start(fixture.open(""), "a", &sink);
    until(async || !direct.outbox().await.unwrap().relays.is_empty()).await;
    let operations = ["UpdateItem", "GetItem", "PutItem", "Scan", "Query", "BatchGetItem"];
    let operations = operations.into_iter().chain(["TransactWriteItems"]);
    for code in ["ExpiredTokenException", "UnrecognizedClientException"] {
        let refused = operations.clone().map(|name| (name, (code, 1.0))).collect();
        fixture.faults(Faults { refused, ..Faults::default() });
        fixture.proxy.reset_counters();
        until(async || fixture.proxy.counters().of("UpdateItem").refused >= 2).await;
        // Whoever begins with such credentials is told so at once.
        let error = fixture.open("").publish(vec![message("t", None, 0)]).await.unwrap_err();
        assert_eq!(error.class(), Class::Permanent, "{error}");
        assert!(error.to_string().contains("credentials"), "{error}");
    }
    fixture.faults(Faults::default());
    direct.publish(vec![message("t", None, 1)]).await.unwrap();
    until(async || sink.got().len() == 1).await;
    relay.stop().await;
}

/// It is known without asking for as long as nobody can have taken a lane.
#[tokio::test]
async fn marks_of_lanes_that_were_lost_are_told_as_late() {
    let fixture = Fixture::new(7).await;
    let messages = (0..2).map(|n| message("t", Some(&format!("k{n}")), n)).collect();
    fixture.open("").publish(messages).await.unwrap();
    let mut old = Hand::new(fixture.open(""), "old", Duration::from_millis(500));
    while old.lanes.len() < 64 {
        old.share().await;
    }
    let read = old.read(2).await;
    old.share().await;
    fixture.proxy.reset_counters();
    assert_eq!(old.settle(&[&read[0]], &[]).await.late, []);
    assert_eq!(fixture.proxy.counters().total().requests, 1, "{:?}", fixture.proxy.counters());
    let mut new = Hand::new(fixture.open(""), "new", Duration::from_secs(30));
    until_lanes(&mut new, 64).await;
    assert_eq!(old.settle(&[&read[1]], &[]).await.late.len(), 64);
    let left = new.read(1).await;
    assert_eq!(left[0].id, read[1].id, "nothing of it was changed");
}

async fn until_lanes(hand: &mut Hand, lanes: usize) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while hand.lanes.len() < lanes {
        assert!(tokio::time::Instant::now() < deadline, "waited in vain");
        hand.share().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
