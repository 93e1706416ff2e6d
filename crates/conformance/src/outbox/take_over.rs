//! What a relay learns about lanes that it gains, and what is put in order for it.

use super::{
    bench::Bench,
    relay::{Relay, SINK, dead, ids, new_message, retry, route},
};
use crate::harness::{AT_ONCE, LATER};
use std::collections::BTreeSet;
use tidegate_core::{
    Message, Position,
    outbox::{
        Aside, Gained, HeldKey, OnDead, Origin, Shared,
        StuckState::{self, Behind, Dead, Later, Retry, Unrouted},
    },
};

/// A relay that has read what was published; it ends after `settle`.
async fn left_behind(
    bench: &Bench,
    messages: Vec<tidegate_core::NewMessage>,
    settle: impl AsyncFnOnce(&mut Relay, &[Message]),
) -> Vec<Message> {
    bench.publish(messages).await;
    let mut relay = Relay::start(bench, "gone").await;
    let read = relay.read().await;
    settle(&mut relay, &read).await;
    relay.end().await;
    read
}

/// What was set aside is listed with these sinks and states, if that is what the store knows: where the relay knows,
/// cases go by what is due.
async fn are_stored<const N: usize>(bench: &Bench, expected: [(&str, StuckState); N]) {
    let stuck = bench.all_stuck().await;
    assert_eq!(stuck.len(), N);
    if bench.has_lines() {
        let stored = stuck.into_iter().map(|stuck| (stuck.sink, stuck.state));
        let expected = expected.map(|(sink, state)| (sink.to_owned(), state));
        assert_eq!(stored.collect::<Vec<_>>(), expected);
    }
}

fn all<T: Ord>(shared: &Shared, of: impl Fn(&Gained) -> Vec<T>) -> BTreeSet<T> {
    shared.gained.iter().flat_map(of).collect()
}

pub(crate) async fn keys_that_wait_are_told(bench: Bench) {
    let keys = ["a", "b", "c", "d", "e", "f"];
    let messages = keys.map(|key| new_message("t", key)).to_vec();
    let read = left_behind(&bench, messages, async |relay, read| {
        let step = relay.step().to(read[5].position).aside(&read[0], retry(LATER));
        let step = step.aside(&read[1], dead(OnDead::Block)).aside(&read[2], dead(OnDead::Skip));
        let step = step.aside(&read[3], dead(OnDead::Park));
        let step = step.aside_for(&read[4], "", Aside::Unrouted);
        step.aside(&read[5], Aside::Later { delay: LATER }).send().await;
    })
    .await;
    let mut relay = Relay::new(&bench, "b");
    let shared = relay.share(LATER).await;
    let held = |message: &Message| HeldKey {
        lane: message.lane,
        sink: SINK.to_owned(),
        key: message.key_hash().expect("it has a key"),
    };
    // What had no route has one now, and waits as well.
    let expected: BTreeSet<HeldKey> = [0, 1, 3, 4].iter().map(|n| held(&read[*n])).collect();
    assert_eq!(all(&shared, |gained| gained.held.clone()), expected);
    let cursor = read[5].position.0;
    assert!(shared.gained.iter().all(|it| it.cursor == cursor || !bench.is_log()));
    assert_eq!(all(&shared, |gained| gained.aside.clone()), BTreeSet::new());
}

pub(crate) async fn what_was_set_aside_beyond_the_cursor_is_told(bench: Bench) {
    let messages = ["a", "b", "a", "c", "a"].map(|key| new_message("t", key)).to_vec();
    let read = left_behind(&bench, messages, async |relay, read| {
        let step = relay.step().to(read[0].position).aside(&read[0], retry(AT_ONCE));
        let step = step.aside(&read[2], Aside::Behind).aside(&read[4], Aside::Behind);
        step.aside(&read[3], dead(OnDead::Skip)).send().await;
    })
    .await;
    let mut relay = Relay::new(&bench, "b");
    let shared = relay.share(LATER).await;
    let expected: BTreeSet<Position> = [2, 3, 4].iter().map(|n| read[*n].position).collect();
    assert_eq!(all(&shared, |gained| gained.aside.clone()), expected);
    for gained in &shared.gained {
        let lane = gained.lease.lane;
        assert!(gained.held.iter().all(|key| key.lane == lane), "each lane its own");
        let of_lane = |id: &Position| read.iter().any(|m| m.position == *id && m.lane == lane);
        assert!(gained.aside.iter().all(of_lane));
    }
    assert_eq!(bench.topic("t").await.outstanding, 4, "none is counted twice");
    assert_eq!(relay.read().await.len(), 4, "what lies beyond a cursor is read once more");
}

pub(crate) async fn what_had_no_route_finds_one(bench: Bench) {
    let messages = vec![
        new_message("new.a", "k"),
        new_message("new.a", "k"),
        new_message("new.b", None),
        new_message("other", "k"),
        new_message("new.c", "k"),
    ];
    let read = left_behind(&bench, messages, async |relay, read| {
        let unrouted = read
            .iter()
            .fold(relay.step(), |step, message| step.aside_for(message, "", Aside::Unrouted));
        let settled = unrouted.to(read[4].position).send().await;
        assert!(settled.freed.iter().all(|key| key.sink.is_empty()));
    })
    .await;
    assert_eq!(bench.topic("new.a").await.unrouted, 2);
    let mut relay = Relay::new(&bench, "b");
    relay.routes = vec![route("new.c", "late"), route("new.*", "new"), route("new.a", "never")];
    let shared = relay.share(LATER).await;
    let expected =
        [("new", Retry), ("new", Behind), ("new", Retry), ("", Unrouted), ("late", Retry)];
    are_stored(&bench, expected).await;
    let held = all(&shared, |gained| gained.held.clone());
    assert_eq!(held.iter().map(|key| key.sink.as_str()).collect::<Vec<_>>(), ["late", "new"]);
    let due = relay.due().await;
    assert_eq!(due.len(), 4);
    let origin = Origin::Aside { attempts: 0, sink: "new".to_owned(), waited_for: Retry };
    assert_eq!(due[0], Message { origin, ..read[0].clone() });
    let step = due.iter().fold(relay.step(), |step, message| step.done(message));
    assert_eq!(step.send().await.freed.len(), 2);
}

pub(crate) async fn what_goes_to_another_sink_waits_there(bench: Bench) {
    let topics = ["t", "t", "t", "gone", "t", "t", "t"];
    let keys = [Some("a"), Some("a"), Some("b"), Some("c"), Some("d"), None, Some("e")];
    let messages = topics.iter().zip(keys).map(|(topic, key)| new_message(topic, key)).collect();
    let read = left_behind(&bench, messages, async |relay, read| {
        let step = relay.step().to(read[6].position).aside(&read[0], retry(LATER));
        let step = step.aside(&read[1], Aside::Behind).aside(&read[2], dead(OnDead::Block));
        let step = step.aside(&read[3], retry(AT_ONCE)).aside(&read[4], dead(OnDead::Skip));
        let step = step.aside(&read[5], retry(LATER));
        step.aside(&read[6], Aside::Later { delay: LATER }).send().await;
    })
    .await;
    let mut relay = Relay::new(&bench, "b");
    relay.routes = vec![route("t", "other")];
    let shared = relay.share(LATER).await;
    let expected = [
        ("other", Retry),
        ("other", Behind),
        ("other", Dead),
        ("", Unrouted),
        (SINK, Dead),
        ("other", Retry),
        ("other", Later),
    ];
    are_stored(&bench, expected).await;
    let held = all(&shared, |gained| gained.held.clone());
    assert_eq!(held.iter().map(|key| key.sink.as_str()).collect::<Vec<_>>(), ["other", "other"]);
    assert_eq!(ids(&relay.due().await), [0, 1, 5].map(|n| read[n].id.clone()));
}

pub(crate) async fn a_found_route_keeps_the_order_of_its_key(bench: Bench) {
    let messages = ["a", "b", "a"].map(|topic| new_message(topic, "k")).to_vec();
    let read = left_behind(&bench, messages, async |relay, read| {
        let step = relay.step().to(read[2].position).aside_for(&read[1], "", Aside::Unrouted);
        step.aside(&read[0], retry(LATER)).aside(&read[2], Aside::Behind).send().await;
    })
    .await;
    let mut relay = Relay::start(&bench, "b").await;
    are_stored(&bench, [(SINK, Retry), (SINK, Behind), (SINK, Behind)]).await;
    assert_eq!(relay.due().await, [], "both wait for the first");
    relay.step().done(&read[0]).send().await;
    are_stored(&bench, [(SINK, Retry), (SINK, Behind)]).await;
    assert_eq!(ids(&relay.due().await), ids(&read[1..]));
}

pub(crate) async fn renewing_leaves_what_was_set_aside_alone(bench: Bench) {
    bench.publish(vec![new_message("t", "k"), new_message("t", "k")]).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let step = relay.step().to(read[1].position).aside(&read[0], dead(OnDead::Block));
    step.aside(&read[1], Aside::Behind).send().await;
    for _ in 0..2 {
        relay.share(LATER).await;
        assert_eq!(
            bench.states().await,
            [(read[0].id.clone(), Dead), (read[1].id.clone(), Behind)]
        );
    }
}
