//! What people decide about messages, some of which are not there any more.

use crate::{
    fixture::{Fixture, drain, message, recorder},
    hand::{Hand, item, replay},
};
use aws_sdk_dynamodb::types::AttributeValue;
use std::time::Duration;
use tidegate_core::{
    InspectOutbox, Message, Publish,
    outbox::{Aside, AuditLine, OnDead, Selection, StuckQuery},
};

fn by() -> AuditLine {
    AuditLine { who: "me".to_owned(), why: "a test".to_owned(), ..AuditLine::default() }
}

fn dead(then: OnDead) -> Aside {
    Aside::Dead { attempts: 1, reason: "never".to_owned(), then }
}

fn of(messages: &[&Message]) -> Selection {
    let ids = messages.iter().map(|message| message.id.clone()).collect();
    Selection { ids: Some(ids), ..Selection::default() }
}

/// So many messages, all dead.
async fn all_dead(fixture: &Fixture, count: usize, then: OnDead) -> (Hand, Vec<Message>) {
    let mut hand = Hand::start(fixture.open("")).await;
    let messages = (0..count).map(|n| message("t", Some(&format!("k{n}")), n)).collect();
    fixture.open("").publish(messages).await.unwrap();
    let read = hand.read(count).await;
    hand.set_aside(&read, dead(then)).await;
    (hand, read)
}

async fn remove(fixture: &Fixture, message: &Message) {
    let delete = fixture.client().delete_item().table_name(fixture.table());
    delete.key("MessageId", AttributeValue::S(message.name.clone())).send().await.unwrap();
}

async fn stuck(fixture: &Fixture) -> usize {
    let query = StuckQuery { limit: 100, ..StuckQuery::default() };
    fixture.open("").stuck(query).await.unwrap().len()
}

#[tokio::test]
async fn ids_may_be_named_twice() {
    let fixture = Fixture::new(1).await;
    let (_hand, read) = all_dead(&fixture, 3, OnDead::Skip).await;
    let store = fixture.open("");
    let twice = of(&[&read[0], &read[1], &read[0], &read[0]]);
    let query = StuckQuery { which: twice.clone(), limit: 10, ..StuckQuery::default() };
    assert_eq!(store.stuck(query).await.unwrap().len(), 2);
    assert_eq!(store.retry_dead(twice, &by()).await.unwrap(), 2);
    assert_eq!(store.drop_dead(of(&[&read[2], &read[2]]), &by()).await.unwrap(), 1);
    let many: Vec<&Message> = (0..100).map(|n| &read[n % 3]).collect();
    assert_eq!(store.drop_dead(of(&many), &by()).await.unwrap(), 0);
}

#[tokio::test]
async fn records_of_messages_that_are_gone_can_be_dropped_and_retried() {
    for then in [OnDead::Skip, OnDead::Block] {
        let fixture = Fixture::new(2).await;
        let (mut hand, read) = all_dead(&fixture, 6, then).await;
        let store = fixture.open("");
        for message in &read[..4] {
            remove(&fixture, message).await;
        }
        assert_eq!(store.drop_dead(of(&[&read[0]]), &by()).await.unwrap(), 1);
        assert_eq!(stuck(&fixture).await, 5);
        // What is not there cannot be tried again; nor is it dead any more.
        assert_eq!(store.retry_dead(of(&[&read[1], &read[4]]), &by()).await.unwrap(), 1);
        assert_eq!(store.drop_dead(Selection::default(), &by()).await.unwrap(), 3, "{then:?}");
        assert_eq!(stuck(&fixture).await, 1);
        hand.share().await;
        let due: Vec<String> = hand.claim().await.due.into_iter().map(|it| it.name).collect();
        assert_eq!(due, [read[4].name.clone()]);
        assert!(item(&fixture, &read[5].name).await.is_empty());
    }
}

/// What is dead is not outstanding, also while it holds its key.
#[tokio::test]
async fn the_dead_are_not_counted_as_outstanding() {
    let fixture = Fixture::new(3).await;
    let (mut hand, _) = all_dead(&fixture, 20, OnDead::Block).await;
    let store = fixture.open("");
    assert_eq!(store.outstanding().await.unwrap().messages, 0);
    let messages = (0..20).map(|n| message("t", Some(&format!("k{n}")), n)).collect();
    store.publish(messages).await.unwrap();
    let read = hand.read(20).await;
    hand.set_aside(&read[..15], Aside::Behind).await;
    assert_eq!(store.outstanding().await.unwrap().messages, 20);
    store.limit_outstanding(Some(3)).await.unwrap();
    let counted = store.outstanding().await.unwrap();
    assert_eq!((counted.messages, counted.limit), (4, Some(3)), "no further than is needed");
}

/// What a relay sets aside while it reads again what waits is neither lost nor undone.
#[tokio::test]
async fn what_is_settled_while_decisions_are_read_is_kept() {
    let fixture = Fixture::new(4).await;
    let (mut hand, read) = all_dead(&fixture, 10, OnDead::Skip).await;
    let store = fixture.open("");
    let later = |n: usize| message("t", Some(&format!("l{n}")), n);
    store.publish((0..10).map(later).collect()).await.unwrap();
    let fresh = hand.read(10).await;
    assert_eq!(store.retry_dead(of(&[&read[0], &read[1]]), &by()).await.unwrap(), 2);
    let slow = [("Query", Duration::from_millis(300))].into();
    fixture.faults(tidegate_drill::dynamodb::Faults { slow, ..Default::default() });
    let mut twin = hand.twin();
    let retry = Aside::Retry { attempts: 1, reason: "not now".to_owned(), delay: Duration::ZERO };
    let (settled, ()) = tokio::join!(hand.set_aside(&fresh, retry), twin.share());
    assert_eq!(settled.late, []);
    fixture.faults(Default::default());
    hand.share().await;
    let due: std::collections::BTreeSet<String> =
        hand.claim().await.due.into_iter().map(|it| it.name).collect();
    let expected = fresh.iter().chain(&read[..2]).map(|it| it.name.clone()).collect();
    assert_eq!(due, expected);
}

/// However much waits, a relay says in time that it lives: it reads again for a part of its lease at a time.
#[tokio::test]
async fn a_decision_keeps_no_relay_from_saying_that_it_lives() {
    let fixture = Fixture::new(5).await;
    let (mut hand, read) = all_dead(&fixture, 2, OnDead::Skip).await;
    let store = fixture.open("");
    assert_eq!(store.retry_dead(of(&[&read[0]]), &by()).await.unwrap(), 1);
    hand.lease = Duration::from_millis(300);
    let latency = Duration::from_millis(150);
    fixture.faults(tidegate_drill::dynamodb::Faults { latency, ..Default::default() });
    // Eight parts of the table are read, which takes 1.2 s.
    let mut shares = 0;
    while hand.claim().await.due.is_empty() {
        let start = std::time::Instant::now();
        hand.share().await;
        shares += 1;
        assert!(start.elapsed() < Duration::from_millis(1_000), "{:?}", start.elapsed());
        assert!(shares < 30, "nothing is read");
    }
    assert!(shares > 1);
}

/// Somebody wants a dead message again, by another way: it is not removed.
#[tokio::test]
async fn a_dead_message_that_is_outstanding_again_is_not_dropped() {
    let fixture = Fixture::new(6).await;
    let (_hand, read) = all_dead(&fixture, 2, OnDead::Skip).await;
    let store = fixture.open("");
    replay(&fixture, &read[0].name).await;
    assert_eq!(store.drop_dead(of(&[&read[0]]), &by()).await.unwrap(), 0);
    assert_eq!(store.retry_dead(of(&[&read[0]]), &by()).await.unwrap(), 0);
    assert_eq!(store.drop_dead(Selection::default(), &by()).await.unwrap(), 1);
    let sink = recorder();
    drain(fixture.open(""), &sink).await;
    assert_eq!(
        sink.got().into_iter().map(|got| got.id).collect::<Vec<_>>(),
        [read[0].name.clone()]
    );
    assert_eq!(stuck(&fixture).await, 0);
}
