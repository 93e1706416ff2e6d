//! What was set aside and is due: heads of keys, with some of those that wait behind them.

use super::{
    bench::Bench,
    relay::{Relay, dead, ids, new_message, retry, tick},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER};
use tidegate_core::{
    Headers, Message, NewMessage,
    limits::MAX_BEHIND,
    outbox::{Aside, AuditLine, ClaimRequest, OnDead, Origin, Selection, StuckState},
};

fn asking(relay: &Relay) -> ClaimRequest {
    relay.asking(Vec::new())
}

/// A head that failed, and others that wait behind it.
async fn line(bench: &Bench, length: usize) -> (Relay, Vec<Message>) {
    let (mut relay, read) = started(bench, &vec![Some("k"); length]).await;
    let step = relay.step().to(read[length - 1].position).aside(&read[0], retry(AT_ONCE));
    read[1..].iter().fold(step, |step, message| step.aside(message, Aside::Behind)).send().await;
    (relay, read)
}

pub(crate) async fn a_head_comes_with_some_of_those_behind_it(bench: Bench) {
    let (mut relay, read) = line(&bench, MAX_BEHIND + 11).await;
    let due = relay.due().await;
    assert_eq!(ids(&due), ids(&read[..=MAX_BEHIND]));
    let step = due.iter().fold(relay.step(), |step, message| step.done(message));
    assert_eq!(step.send().await.freed, [], "ten are left");
    let due = relay.due().await;
    assert_eq!(ids(&due), ids(&read[MAX_BEHIND + 1..]));
    let step = due.iter().fold(relay.step(), |step, message| step.done(message));
    assert_eq!(step.send().await.freed.len(), 1);
}

pub(crate) async fn what_is_tried_again_waits_for_those_before_it(bench: Bench) {
    let (mut relay, read) = line(&bench, 5).await;
    relay.step().aside(&read[0], retry(LATER)).aside(&read[2], dead(OnDead::Skip)).send().await;
    let retried = bench.store.retry_dead(Selection::default(), &AuditLine::default()).await;
    assert_eq!(retried.expect("retry the dead"), 1);
    relay.heed().await;
    let claim = relay.ask(asking(&relay)).await;
    assert_eq!(claim.due, [], "all wait for the first");
    assert!(claim.next_due.is_some_and(|due| due > LATER / 2), "{:?}", claim.next_due);
    relay.step().done(&read[0]).send().await;
    assert_eq!(ids(&relay.due().await), ids(&read[1..]));
}

pub(crate) async fn a_head_brings_the_rest_up_to_one_that_holds_the_key(bench: Bench) {
    let (mut relay, read) = line(&bench, 5).await;
    relay.step().aside(&read[2], dead(OnDead::Block)).send().await;
    assert_eq!(ids(&relay.due().await), ids(&read[..2]));
}

pub(crate) async fn what_messages_waited_for_is_told(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("a"), Some("b"), Some("b")]).await;
    let step = relay.step().to(read[2].position).aside(&read[0], Aside::Later { delay: AT_ONCE });
    step.aside(&read[1], retry(AT_ONCE)).aside(&read[2], Aside::Behind).send().await;
    let state = |message: &Message| match message.origin {
        Origin::Aside { waited_for, .. } => waited_for,
        Origin::Lane { .. } => panic!("it was set aside"),
    };
    let due: Vec<_> = relay.due().await.iter().map(|it| (it.id.clone(), state(it))).collect();
    let states = [StuckState::Later, StuckState::Retry, StuckState::Behind];
    assert_eq!(due, [0, 1, 2].map(|n| (read[n].id.clone(), states[n])));
}

pub(crate) async fn a_head_that_is_not_due_keeps_the_rest(bench: Bench) {
    let (mut relay, read) = line(&bench, 4).await;
    relay.step().aside(&read[0], retry(LATER)).send().await;
    let claim = relay.ask(asking(&relay)).await;
    assert_eq!(claim.due, []);
    assert!(claim.next_due.is_some_and(|due| due > LATER / 2), "{:?}", claim.next_due);
}

pub(crate) async fn what_is_under_way_is_left_out(bench: Bench) {
    let (mut relay, read) = line(&bench, 4).await;
    let without = |under_way: &[&Message]| ClaimRequest {
        under_way: under_way.iter().map(|message| message.position).collect(),
        ..asking(&relay)
    };
    let claim = relay.ask(without(&[&read[0]])).await;
    assert_eq!((claim.due, claim.next_due), (Vec::new(), None), "the head brings the rest");
    let claim = relay.ask(without(&[&read[1], &read[3]])).await;
    assert_eq!(ids(&claim.due), [read[0].id.clone()], "there must be no gap");
    let claim = relay.ask(without(&[&read[3]])).await;
    assert_eq!(ids(&claim.due), ids(&read[..3]));
    assert_eq!(claim.next_due, Some(AT_ONCE));
    let none = ClaimRequest { lanes: Vec::new(), ..asking(&relay) };
    let claim = relay.ask(none).await;
    assert_eq!((claim.due, claim.next_due), (Vec::new(), None), "no lanes");
    relay.finish().await;
}

pub(crate) async fn sinks_that_take_no_more_are_left_out(bench: Bench) {
    let (mut relay, read) = started(&bench, &[None; 3]).await;
    let (closed, open) = ("it's \"closed\", [1", "open");
    let step = relay.step().to(read[2].position).aside_for(&read[0], closed, retry(AT_ONCE));
    step.aside_for(&read[1], open, retry(AT_ONCE)).send().await;
    let without = |sinks: &[&str]| ClaimRequest {
        closed: sinks.iter().map(|sink| (*sink).to_owned()).collect(),
        ..asking(&relay)
    };
    for (sinks, due) in [
        (&[][..], &read[..2]),
        (&[closed], &read[1..2]),
        (&["another", open], &read[..1]),
        (&[closed, open], &[]),
    ] {
        let claim = relay.ask(without(sinks)).await;
        assert_eq!(ids(&claim.due), ids(due), "{sinks:?}");
        assert_eq!(claim.next_due.is_some(), !due.is_empty(), "{sinks:?}");
    }
}

pub(crate) async fn those_due_first_come_first_in_the_order_of_their_ids(bench: Bench) {
    let (mut relay, read) = started(&bench, &[None; 6]).await;
    // They become due in another order than their own.
    for n in [4, 2, 5, 0] {
        relay.step().aside(&read[n], retry(AT_ONCE)).send().await;
        tick().await;
    }
    relay.step().aside(&read[1], retry(LATER)).send().await;
    let most = |most_due| ClaimRequest { most_due, ..asking(&relay) };
    for (count, expected) in [(0, vec![]), (1, vec![4]), (2, vec![2, 4]), (3, vec![2, 4, 5])] {
        let due = relay.ask(most(count)).await.due;
        assert_eq!(ids(&due), expected.iter().map(|n| read[*n].id.clone()).collect::<Vec<_>>());
    }
    assert_eq!(ids(&relay.due().await), [0, 2, 4, 5].map(|n| read[n].id.clone()));
}

pub(crate) async fn next_due_is_the_soonest(bench: Bench) {
    let (mut relay, read) = started(&bench, &[None; 3]).await;
    let claim = relay.ask(asking(&relay)).await;
    assert_eq!((claim.due, claim.next_due), (Vec::new(), None));
    let step = relay.step().to(read[2].position).aside(&read[0], retry(LATER));
    step.aside(&read[1], Aside::Later { delay: LATER / 4 }).send().await;
    let next = relay.ask(asking(&relay)).await.next_due.expect("two are waiting");
    assert!(next <= LATER / 4 && next > LATER / 8, "{next:?}");
    relay.step().aside(&read[2], Aside::Unrouted).done(&read[1]).send().await;
    let next = relay.ask(asking(&relay)).await.next_due.expect("one is waiting");
    assert!(next > LATER / 2, "{next:?}");
}

pub(crate) async fn due_messages_are_limited_by_bytes(bench: Bench) {
    let headers = Headers::from_iter([("content-type", "text/plain")]);
    let sized = |bytes| NewMessage {
        payload: vec![b'x'; bytes],
        headers: headers.clone(),
        ..new_message("t", None)
    };
    bench.publish([0, 500, 50, 50, 1].map(sized).to_vec()).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let step = relay.step().to(read[4].position);
    read.iter().fold(step, |step, message| step.aside(message, retry(AT_ONCE))).send().await;
    let small = ClaimRequest { most_bytes: 100, ..asking(&relay) };
    assert_eq!(ids(&relay.ask(small.clone()).await.due), [read[0].id.clone()]);
    relay.step().done(&read[0]).send().await;
    assert_eq!(ids(&relay.ask(small.clone()).await.due), [read[1].id.clone()], "one may have more");
    relay.step().done(&read[1]).send().await;
    assert_eq!(ids(&relay.ask(small).await.due), ids(&read[2..4]));
}
