//! Outboxes that are read by state: a message is pending until it is marked, and no cursor passes it.

use super::{
    bench::Bench,
    relay::{Relay, SINK, dead, ids, new_message, retry},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER};
use tidegate_core::{
    NewMessage,
    outbox::{Aside, AuditLine, OnDead, Selection, StuckState},
};

pub(crate) async fn what_is_done_is_marked_whatever_is_before_it(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("a"), Some("b"), None, Some("c"), None]).await;
    relay.step().done(&read[3]).done(&read[1]).send().await;
    assert_eq!(bench.topic("t").await.outstanding, 3);
    relay.end().await;
    let mut next = Relay::start(&bench, "b").await;
    assert_eq!(ids(&next.read().await), [0, 2, 4].map(|n| read[n].id.clone()));
    next.finish().await;
    assert_eq!(bench.outbox().await.topics, []);
}

pub(crate) async fn what_was_read_comes_once_and_again_to_the_next(bench: Bench) {
    let published = bench.publish_keys("t", ["k", "k", "l"]).await;
    let relay = Relay::start(&bench, "a").await;
    let read = async || relay.ask_unread().await;
    assert_eq!(ids(&read().await), published);
    assert_eq!(read().await, [], "it has them");
    let more = bench.publish_keys("t", ["k"]).await;
    assert_eq!(ids(&read().await), more);
    relay.end().await;
    let relay = Relay::start(&bench, "a").await;
    assert_eq!(ids(&relay.read().await), [&published[..], &more[..]].concat(), "none was marked");
}

/// After a take-over, too, so that what waits of a key goes before what is read of it.
pub(crate) async fn what_is_read_comes_behind_what_was_set_aside(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("k"), Some("k")]).await;
    relay.step().aside(&read[0], retry(AT_ONCE)).aside(&read[1], Aside::Behind).send().await;
    relay.end().await;
    for name in ["b", "c"] {
        let mut relay = Relay::new(&bench, name);
        let shared = relay.share(LATER).await;
        let held: Vec<_> = shared.gained.iter().flat_map(|gained| &gained.held).collect();
        assert_eq!(held.len(), 1, "the key waits");
        assert_eq!((held[0].sink.as_str(), Some(held[0].key)), (SINK, read[0].key_hash()));
        let (due, again) = (relay.due().await, relay.read().await);
        assert_eq!(ids(&due), ids(&read[..2]));
        assert_eq!(ids(&again), ids(&read[2..]));
        let last = due[1].position;
        assert!(shared.gained.iter().all(|gained| gained.cursor >= last.0), "{shared:?}");
        assert!(again[0].position > last);
        relay.end().await;
    }
}

/// Somebody decides about a message while a settlement that was sent again is still on its way.
pub(crate) async fn a_copy_that_comes_late_undoes_no_decision(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("l"), None]).await;
    let step = relay.step().aside(&read[0], dead(OnDead::Block));
    let copy = step.aside(&read[1], dead(OnDead::Skip)).done(&read[2]).build();
    bench.settle_messages(copy.clone()).await;
    let by = AuditLine::default();
    assert_eq!(bench.store.retry_dead(Selection::default(), &by).await.expect("retry"), 2);
    assert_eq!(bench.settle_messages(copy).await.late, []);
    let both = [0, 1].map(|n| (read[n].id.clone(), StuckState::Retry));
    assert_eq!(bench.states().await, both);
    relay.heed().await;
    assert_eq!(ids(&relay.due().await), ids(&read[..2]));
}

pub(crate) async fn what_a_lost_lane_settles_keeps_what_was_set_aside(bench: Bench) {
    bench.publish(["a", "b", "c"].map(|key| new_message("t", key)).to_vec()).await;
    let mut old = Relay::new(&bench, "old");
    old.share(AT_ONCE).await;
    let read = old.read().await;
    old.step().aside(&read[0], retry(AT_ONCE)).send().await;
    let mut new = Relay::succeed(&bench, "new").await;
    let again = new.read().await;
    assert_eq!(ids(&again), ids(&read[1..]));
    new.step().aside(&again[0], dead(OnDead::Park)).send().await;
    let before = bench.all_stuck().await;
    let late = old.step().done(&read[0]).done(&read[1]).aside(&read[2], dead(OnDead::Skip));
    let settled = bench.settle_messages(late.build()).await;
    assert_eq!((settled.late.len(), settled.freed.len()), (64, 0));
    let after = bench.all_stuck().await;
    let state = |stuck: &tidegate_core::outbox::Stuck| (stuck.id.clone(), stuck.state, stuck.then);
    assert_eq!(
        after.iter().map(state).collect::<Vec<_>>(),
        before.iter().map(state).collect::<Vec<_>>()
    );
    new.finish().await;
}

/// It is left where it is: set aside, it would keep a place that is before what is read again of its key.
pub(crate) async fn a_delayed_message_is_not_read_before_its_time(bench: Bench) {
    let delayed = |delay| NewMessage { delay: Some(delay), ..new_message("t", "k") };
    let published =
        bench.publish(vec![delayed(LATER), delayed(AT_ONCE), new_message("t", "k")]).await;
    let relay = Relay::start(&bench, "a").await;
    let claim = relay.ask(relay.asking(vec![relay.reader()])).await;
    assert_eq!(ids(&claim.readings[0].messages), published[1..]);
    assert!(claim.next_due.is_some_and(|due| due <= LATER && due > LATER / 2), "{claim:?}");
    assert_eq!(bench.topic("t").await.outstanding, 3);
    assert_eq!(bench.states().await, []);
}
