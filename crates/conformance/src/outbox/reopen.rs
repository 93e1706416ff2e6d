//! What is settled is durable.

use super::{
    bench::Bench,
    relay::{Relay, dead, ids, retry, unplaced},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER};
use tidegate_core::outbox::{Aside, OnDead, StuckState};

pub(crate) async fn what_was_published_and_settled_is_found_again(bench: Bench) {
    let keys = [Some("k"), Some("k"), Some("l"), None, Some("m")];
    let (mut relay, read) = started(&bench, &keys).await;
    let step = relay.step().to(read[3].position).aside(&read[0], retry(AT_ONCE));
    step.aside(&read[1], Aside::Behind).aside(&read[2], dead(OnDead::Block)).send().await;
    relay.end().await;
    let Some(again) = bench.reopen().await else { return };
    drop(bench);
    let relay = Relay::start(&again, "b").await;
    assert_eq!(unplaced(&relay.read().await), unplaced(&read[4..]), "with its name");
    assert_eq!(ids(&relay.due().await), ids(&read[..2]));
    assert_eq!(again.states().await[2], (read[2].id.clone(), StuckState::Dead));
}

pub(crate) async fn handles_share_the_lanes(bench: Bench) {
    let Some(other) = bench.reopen().await else { return };
    let mut first = Relay::start(&bench, "a").await;
    let mut second = Relay::start(&other, "b").await;
    assert!(second.lanes.is_empty());
    let surplus = first.share(LATER).await.surplus;
    first.give_back(surplus, false).await;
    assert_eq!(second.share(LATER).await.gained.len(), surplus);
    let mut published = other.publish_keys("t", ["a", "b", "c", "d", "e", "f"]).await;
    let mut read = [ids(&first.read().await), ids(&second.read().await)].concat();
    read.sort_unstable();
    published.sort_unstable();
    assert_eq!(read, published, "each has its own");
}
