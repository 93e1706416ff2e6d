//! Of every key the first that waits is due, unless one before it holds the key.

use super::{
    bench::Bench,
    relay::{Relay, SINK, dead, ids, retry},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER};
use tidegate_core::{
    Message,
    outbox::{
        Aside, AuditLine, HeldKey, OnDead, Selection,
        StuckState::{self, Behind, Dead, Retry},
    },
};

fn key_of(message: &Message, sink: &str) -> HeldKey {
    let key = message.key_hash().expect("it has a key");
    HeldKey { lane: message.lane, sink: sink.to_owned(), key }
}

/// Three of one key: the first failed, the others wait behind it.
async fn line(bench: &Bench) -> (Relay, Vec<Message>) {
    let (mut relay, read) = started(bench, &[Some("k"); 4]).await;
    let step = relay.step().to(read[2].position).aside(&read[0], retry(LATER));
    let settled = step.aside(&read[1], Aside::Behind).aside(&read[2], Aside::Behind).send().await;
    assert_eq!(settled.freed, []);
    assert_eq!(states(bench).await, [Retry, Behind, Behind]);
    (relay, read)
}

async fn states(bench: &Bench) -> Vec<StuckState> {
    bench.states().await.into_iter().map(|(_, state)| state).collect()
}

pub(crate) async fn when_the_head_is_done_the_next_is_due(bench: Bench) {
    let (mut relay, read) = line(&bench).await;
    assert_eq!(relay.due().await, []);
    assert_eq!(relay.step().done(&read[0]).send().await.freed, []);
    assert_eq!(states(&bench).await, [Retry, Behind]);
    assert_eq!(ids(&relay.due().await), ids(&read[1..3]));
    assert_eq!(relay.step().done(&read[1]).send().await.freed, []);
    let settled = relay.step().done(&read[2]).send().await;
    assert_eq!(settled.freed, [key_of(&read[0], SINK)]);
}

pub(crate) async fn several_of_a_key_are_done_at_once(bench: Bench) {
    let (mut relay, read) = line(&bench).await;
    relay.step().done(&read[0]).done(&read[1]).send().await;
    assert_eq!(bench.states().await, [(read[2].id.clone(), Retry)]);
    relay.step().aside(&read[3], Aside::Behind).done(&read[2]).send().await;
    assert_eq!(bench.states().await, [(read[3].id.clone(), Retry)]);
    let settled = relay.step().done(&read[3]).send().await;
    assert_eq!(settled.freed, [key_of(&read[0], SINK)]);
}

pub(crate) async fn one_in_the_middle_is_done(bench: Bench) {
    let (mut relay, read) = line(&bench).await;
    assert_eq!(relay.step().done(&read[1]).send().await.freed, []);
    assert_eq!(bench.states().await, [(read[0].id.clone(), Retry), (read[2].id.clone(), Behind)]);
}

pub(crate) async fn a_dead_head_that_is_skipped_lets_the_next_go(bench: Bench) {
    let (mut relay, read) = line(&bench).await;
    let settled = relay.step().aside(&read[0], dead(OnDead::Skip)).send().await;
    assert_eq!((states(&bench).await, settled.freed), (vec![Dead, Retry, Behind], Vec::new()));
    let settled = relay.step().done(&read[1]).done(&read[2]).send().await;
    assert_eq!(settled.freed, [key_of(&read[0], SINK)]);
}

pub(crate) async fn a_dead_head_that_blocks_or_parks_keeps_the_rest(bench: Bench) {
    let (mut relay, read) = line(&bench).await;
    for then in [OnDead::Block, OnDead::Park] {
        let settled = relay.step().aside(&read[0], dead(then)).send().await;
        assert_eq!((states(&bench).await, settled.freed), (vec![Dead, Behind, Behind], Vec::new()));
        assert_eq!(relay.due().await, []);
    }
    let settled = relay.step().to(read[3].position).aside(&read[3], Aside::Behind).send().await;
    assert_eq!((states(&bench).await.len(), settled.freed), (4, Vec::new()));
    assert_eq!(relay.due().await, []);
}

pub(crate) async fn a_follower_comes_in_as_the_head_goes(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"); 3]).await;
    relay.step().to(read[0].position).aside(&read[0], retry(AT_ONCE)).send().await;
    let step = relay.step().to(read[1].position).done(&read[0]).aside(&read[1], Aside::Behind);
    assert_eq!(step.send().await.freed, []);
    assert_eq!(bench.states().await, [(read[1].id.clone(), Retry)]);
    let step = relay.step().to(read[2].position).aside(&read[1], dead(OnDead::Skip));
    assert_eq!(step.aside(&read[2], Aside::Behind).send().await.freed, []);
    assert_eq!(bench.states().await, [(read[1].id.clone(), Dead), (read[2].id.clone(), Retry)]);
    let settled = relay.step().aside(&read[2], dead(OnDead::Skip)).send().await;
    assert_eq!(settled.freed, [key_of(&read[0], SINK)], "the skipped hold nothing");
}

pub(crate) async fn heads_and_followers_come_in_together(bench: Bench) {
    for then in [None, Some(OnDead::Skip), Some(OnDead::Block), Some(OnDead::Park)] {
        bench.publish_keys("t", ["k", "k", "k"]).await;
        let mut relay = Relay::start(&bench, "a").await;
        let read = relay.read().await;
        let head = then.map_or_else(|| retry(LATER), dead);
        let step = relay.step().to(read[2].position).aside(&read[2], Aside::Behind);
        step.aside(&read[0], head).aside(&read[1], Aside::Behind).send().await;
        let expected = match then {
            None => [Retry, Behind, Behind],
            Some(OnDead::Skip) => [Dead, Retry, Behind],
            Some(OnDead::Block | OnDead::Park) => [Dead, Behind, Behind],
        };
        assert_eq!(states(&bench).await, expected, "{then:?}");
        // What is dead and holds nothing is nobody's but people's.
        let left = if then == Some(OnDead::Skip) { &read[1..] } else { &read[..] };
        let step = left.iter().fold(relay.step(), |step, message| step.done(message));
        assert_eq!(step.send().await.freed, [key_of(&read[0], SINK)]);
        let dropped = bench.store.drop_dead(Selection::default(), &AuditLine::default()).await;
        assert_eq!(dropped.expect("drop the dead"), u64::from(left.len() < 3));
        relay.end().await;
    }
}

pub(crate) async fn an_older_one_comes_in_before_those_that_wait(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"); 4]).await;
    let step = relay.step().aside(&read[2], retry(LATER));
    step.aside(&read[3], Aside::Behind).send().await;
    relay.step().aside(&read[1], Aside::Behind).send().await;
    let expected = [Retry, Behind, Behind];
    assert_eq!(states(&bench).await, expected, "the first of its key is due, and no other");
    relay.step().done(&read[2]).aside(&read[0], dead(OnDead::Block)).send().await;
    assert_eq!(states(&bench).await, [Dead, Behind, Behind]);
    relay.step().done(&read[1]).send().await;
    assert_eq!(states(&bench).await, [Dead, Behind], "one before it holds the key");
}

pub(crate) async fn what_has_nothing_to_wait_behind_is_due(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), None, Some("k")]).await;
    let step = relay.step().to(read[2].position).aside(&read[1], Aside::Behind);
    step.aside(&read[0], Aside::Behind).aside(&read[2], Aside::Behind).send().await;
    assert_eq!(states(&bench).await, [Retry, Retry, Behind]);
    assert_eq!(ids(&relay.due().await), ids(&read));
}

pub(crate) async fn keys_and_sinks_do_not_mind_each_other(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("l"), Some("k"), Some("l")]).await;
    let step = relay.step().to(read[3].position).aside(&read[0], retry(LATER));
    let step = step.aside(&read[1], retry(LATER)).aside_for(&read[2], "another", Aside::Behind);
    step.aside(&read[3], Aside::Behind).send().await;
    assert_eq!(states(&bench).await, [Retry, Retry, Retry, Behind], "by sink and key");
    let settled = relay.step().done(&read[0]).send().await;
    assert_eq!(settled.freed, [key_of(&read[0], SINK)]);
    assert_eq!(states(&bench).await, [Retry, Retry, Behind]);
    let settled = relay.step().done(&read[2]).done(&read[1]).send().await;
    assert_eq!(settled.freed, [key_of(&read[2], "another")]);
    assert_eq!(states(&bench).await, [Retry]);
}

pub(crate) async fn a_head_that_goes_to_another_sink_lets_the_next_go(bench: Bench) {
    let (mut relay, read) = line(&bench).await;
    let settled = relay.step().aside_for(&read[0], "another", retry(LATER)).send().await;
    assert_eq!(settled.freed, []);
    assert_eq!(states(&bench).await, [Retry, Retry, Behind]);
    let settled = relay.step().done(&read[1]).done(&read[2]).send().await;
    assert_eq!(settled.freed, [key_of(&read[0], SINK)]);
    let settled = relay.step().done(&read[0]).send().await;
    assert_eq!(settled.freed, [key_of(&read[0], "another")]);
}
