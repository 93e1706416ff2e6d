//! Removing what was sent, and only that.

use super::{
    bench::Bench,
    relay::{Relay, dead, ids, new_message, retry, unplaced},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER};
use std::time::Duration;
use tidegate_core::{
    Message, MessageId,
    outbox::{Aside, AuditLine, OnDead, Sealed, Selection, StuckState},
};

async fn seal(bench: &Bench, age: Duration) -> Option<Sealed> {
    bench.store.seal(age).await.expect("seal messages")
}

async fn discard(bench: &Bench, sealed: Sealed) -> u64 {
    bench.store.discard(sealed).await.expect("discard messages")
}

/// All of it, in pages.
async fn sealed(bench: &Bench, sealed: Sealed, limit: usize) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::new();
    loop {
        let after = all.last().map(|message| message.id.clone());
        let page = bench.store.sealed(sealed, after, limit).await.expect("read what was sealed");
        assert!(page.len() <= limit);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// In the order of their ids, as they are listed.
fn by_id(messages: &[Message]) -> Vec<Message> {
    let mut messages = unplaced(messages);
    messages.sort_by_key(|message| message.id.clone());
    messages
}

async fn find(bench: &Bench, id: MessageId) -> Option<Message> {
    let stored = bench.store.message(id).await.expect("look for a message");
    stored.map(|stored| stored.message)
}

/// A message is found as it was read. What is read by state has a position only while it is read, or set aside.
async fn is_as_read(bench: &Bench, read: &Message) {
    let found = find(bench, read.id.clone()).await.expect("it is still there");
    if bench.is_log() {
        assert_eq!(found.position, read.position);
    }
    assert_eq!(unplaced(&[found]), unplaced(std::slice::from_ref(read)));
}

pub(crate) async fn nothing_is_sealed_that_is_young_or_unread(bench: Bench) {
    assert_eq!(seal(&bench, AT_ONCE).await, None, "there is nothing");
    let (mut relay, _) = started(&bench, &[Some("k"), None]).await;
    assert_eq!(seal(&bench, AT_ONCE).await, None, "it is unread");
    relay.finish().await;
    assert_eq!(seal(&bench, LATER).await, None, "it is young");
    assert!(seal(&bench, AT_ONCE).await.is_some());
}

pub(crate) async fn what_was_sent_is_sealed_read_and_discarded(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("a"), None, Some("b"), None, Some("a")]).await;
    relay.finish().await;
    let found = seal(&bench, AT_ONCE).await.expect("all was sent");
    assert_eq!(found.messages, 5);
    for limit in [1, 2, 100] {
        assert_eq!(unplaced(&sealed(&bench, found, limit).await), by_id(&read));
    }
    assert_eq!(discard(&bench, found).await, 5);
    assert_eq!(find(&bench, read[0].id.clone()).await, None);
    assert_eq!(discard(&bench, found).await, 0, "it is gone already");
    assert_eq!(seal(&bench, AT_ONCE).await, None);
    let next = bench.publish(vec![new_message("t", "a")]).await;
    assert!(next[0] > read[4].id || !bench.is_log(), "ids go on");
    assert_eq!(ids(&relay.read().await), next);
}

pub(crate) async fn what_was_set_aside_stays_with_its_payload(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("l"), Some("k"), None]).await;
    let step = relay.step().to(read[3].position).aside(&read[0], dead(OnDead::Block));
    step.aside(&read[2], Aside::Behind).send().await;
    let found = seal(&bench, AT_ONCE).await.expect("two were sent");
    assert_eq!(found.messages, 2);
    let expected = by_id(&[read[1].clone(), read[3].clone()]);
    assert_eq!(unplaced(&sealed(&bench, found, 10).await), expected);
    assert_eq!(discard(&bench, found).await, 2);
    assert_eq!(find(&bench, read[1].id.clone()).await, None);
    for n in [0, 2] {
        is_as_read(&bench, &read[n]).await;
    }
    let stuck = bench.all_stuck().await;
    assert_eq!((stuck[0].key.as_deref(), stuck[1].key.as_deref()), (Some("k"), Some("k")));
    assert!(bench.topic("t").await.oldest.is_some());
    let retried = bench.store.retry_dead(Selection::default(), &AuditLine::default()).await;
    assert_eq!(retried.expect("retry the dead"), 1);
    relay.heed().await;
    let due = relay.due().await;
    let without_origin =
        |message: &Message| Message { origin: read[0].origin.clone(), ..message.clone() };
    assert_eq!(
        due.iter().map(without_origin).collect::<Vec<_>>(),
        [read[0].clone(), read[2].clone()]
    );
    let step = due.iter().fold(relay.step(), |step, message| step.done(message));
    assert_eq!(step.send().await.freed.len(), 1);
    assert_eq!(bench.all_stuck().await, []);
}

pub(crate) async fn what_changed_since_must_be_sealed_again(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("l"), None]).await;
    relay.step().to(read[2].position).aside(&read[1], retry(AT_ONCE)).send().await;
    let found = seal(&bench, AT_ONCE).await.expect("two were sent");
    assert_eq!(found.messages, 2);
    relay.step().done(&read[1]).send().await;
    assert_eq!(discard(&bench, found).await, 0, "one more was sent since");
    assert_eq!(find(&bench, read[0].id.clone()).await.as_ref(), Some(&read[0]));
    let found = seal(&bench, AT_ONCE).await.expect("three were sent");
    assert_eq!(discard(&bench, found).await, 3);
}

pub(crate) async fn what_comes_later_is_left_alone(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), None]).await;
    relay.finish().await;
    let found = seal(&bench, AT_ONCE).await.expect("two were sent");
    let [late] = bench.publish_keys("t", ["k"]).await;
    assert_eq!(discard(&bench, found).await, 2);
    assert_eq!(find(&bench, read[0].id.clone()).await, None);
    assert_eq!(ids(&relay.read().await), [late]);
    assert_eq!(seal(&bench, AT_ONCE).await, None);
    relay.finish().await;
    let found = seal(&bench, AT_ONCE).await.expect("it was sent");
    assert_eq!(discard(&bench, found).await, 1);
}

pub(crate) async fn a_dropped_message_is_not_among_those_sent(bench: Bench) {
    let (mut relay, read) = started(&bench, &[None, None]).await;
    relay.step().to(read[1].position).aside(&read[0], dead(OnDead::Skip)).send().await;
    let dropped = bench.store.drop_dead(Selection::default(), &AuditLine::default()).await;
    assert_eq!(dropped.expect("drop the dead"), 1);
    let found = seal(&bench, AT_ONCE).await.expect("one was sent");
    assert_eq!(
        (found.messages, ids(&sealed(&bench, found, 10).await)),
        (1, vec![read[1].id.clone()])
    );
}

pub(crate) async fn rounds_of_retention_lose_nothing(bench: Bench) {
    let mut relay = Relay::start(&bench, "a").await;
    let mut kept = Vec::new();
    for _ in 0..9 {
        bench
            .publish(vec![new_message("t", "k"), new_message("t", None), new_message("t", "l")])
            .await;
        let read = relay.read().await;
        assert_eq!(read.len(), 3);
        relay.step().to(read[2].position).aside(&read[1], dead(OnDead::Skip)).send().await;
        kept.push(read[1].clone());
        let found = seal(&bench, AT_ONCE).await.expect("two were sent");
        assert_eq!((found.messages, discard(&bench, found).await), (2, 2));
    }
    for message in &kept {
        is_as_read(&bench, message).await;
    }
    let expected: Vec<_> =
        kept.iter().map(|message| (message.id.clone(), StuckState::Dead)).collect();
    assert_eq!(bench.states().await, expected);
}
