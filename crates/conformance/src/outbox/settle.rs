//! Progress and what was set aside, under fences, in one transaction.

use super::{
    bench::Bench,
    relay::{Relay, dead, ids, new_message, retry},
};
use crate::harness::{AT_ONCE, LATER};
use tidegate_core::{
    Message,
    outbox::{Aside, AuditLine, OnDead, Origin, Selection, Stuck, StuckState},
};

/// A relay with all lanes, and what it read.
pub(super) async fn started(bench: &Bench, keys: &[Option<&'static str>]) -> (Relay, Vec<Message>) {
    bench.publish(keys.iter().map(|key| new_message("t", *key)).collect()).await;
    let relay = Relay::start(bench, "a").await;
    let read = relay.read().await;
    (relay, read)
}

pub(crate) async fn cursors_move_on_and_never_back(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"); 6]).await;
    relay.step().to(read[3].position).send().await;
    assert_eq!(ids(&relay.read().await), ids(&read[4..]));
    assert_eq!(bench.topic("t").await.outstanding, 2);
    relay.lanes.values_mut().for_each(|held| held.cursor = 0);
    relay.step().send().await;
    assert_eq!(bench.topic("t").await.outstanding, 2);
    relay.end().await;
    assert_eq!(ids(&Relay::start(&bench, "b").await.read().await), ids(&read[4..]));
}

pub(crate) async fn late_lanes_change_nothing_while_others_apply(bench: Bench) {
    let keys = [Some("a"), Some("b"), Some("c"), Some("d"), Some("e"), Some("f")];
    let (mut relay, read) = started(&bench, &keys).await;
    let step = read.iter().fold(relay.step(), |step, message| step.aside(message, retry(AT_ONCE)));
    step.to(read[1].position).send().await;
    let before = bench.all_stuck().await;
    let lost = read[0].lane;
    relay.lanes.get_mut(&lost).expect("it has all lanes").fence.0 -= 1_000_000;
    let step = read.iter().fold(relay.step(), |step, message| step.done(message));
    let settled = bench.settle_messages(step.to(read[5].position).build()).await;
    assert_eq!(settled.late, [lost]);
    assert!(settled.freed.iter().all(|key| key.lane != lost), "{settled:?}");
    let in_lane = |stuck: &Stuck| read.iter().any(|m| m.id == stuck.id && m.lane == lost);
    let left: Vec<Stuck> = before.into_iter().filter(in_lane).collect();
    let comparable = |stuck: Stuck| Stuck { due_in: None, ..stuck };
    let now = bench.all_stuck().await.into_iter().map(comparable).collect::<Vec<_>>();
    assert_eq!(now, left.into_iter().map(comparable).collect::<Vec<_>>());

    let new = read[2..].iter().find(|message| message.lane == lost).unwrap_or(&read[0]);
    let late = relay.step().aside(new, dead(OnDead::Block)).build();
    assert_eq!(bench.settle_messages(late).await.late, [lost]);
    assert!(bench.all_stuck().await.iter().all(|stuck| stuck.state != StuckState::Dead));
}

pub(crate) async fn a_late_copy_of_an_earlier_settlement_changes_nothing(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("k"), Some("l")]).await;
    let earlier = relay.step().aside(&read[0], retry(AT_ONCE)).build();
    bench.settle_messages(earlier.clone()).await;
    let last = relay.step().to(read[2].position).done(&read[0]).build();
    for _ in 0..2 {
        assert_eq!(bench.settle_messages(last.clone()).await.late, [], "the last may come again");
        let late = bench.settle_messages(earlier.clone()).await.late.len();
        assert!(late == 64 || !bench.is_log());
        assert_eq!(bench.states().await, []);
    }
    relay.end().await;
    let mut other = Relay::start(&bench, "b").await;
    other.step().send().await;
}

pub(crate) async fn what_was_dropped_is_not_set_aside_again(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("k")]).await;
    let step = relay.step().to(read[1].position).aside(&read[0], dead(OnDead::Block));
    let settlement = step.aside(&read[1], Aside::Behind).build();
    bench.settle_messages(settlement.clone()).await;
    let dropped = bench.store.drop_dead(Selection::default(), &AuditLine::default()).await;
    assert_eq!(dropped.expect("drop the dead"), 1);
    bench.settle_messages(settlement).await;
    relay.heed().await;
    assert_eq!(ids(&relay.due().await), [read[1].id.clone()]);
    assert_eq!(bench.states().await.len(), 1);
}

pub(crate) async fn a_relay_that_lost_its_lanes_changes_nothing(bench: Bench) {
    bench.publish_keys("t", ["a", "b"]).await;
    let mut old = Relay::new(&bench, "old");
    old.share(AT_ONCE).await;
    let read = old.read().await;
    let mut new = Relay::succeed(&bench, "new").await;
    let settlement = old.step().to(read[1].position).aside(&read[0], retry(AT_ONCE)).build();
    let settled = bench.settle_messages(settlement).await;
    assert_eq!((settled.late.len(), settled.freed.len()), (64, 0));
    assert_eq!(bench.states().await, []);
    assert_eq!(ids(&new.read().await), ids(&read));
    new.finish().await;
}

pub(crate) async fn an_expired_lane_that_nobody_took_is_settled(bench: Bench) {
    bench.publish_keys("t", ["a"]).await;
    let mut relay = Relay::new(&bench, "a");
    relay.share(AT_ONCE).await;
    relay.finish().await;
    assert_eq!(relay.read().await, []);
}

pub(crate) async fn sent_again_it_changes_nothing(bench: Bench) {
    let keys = [Some("k"), Some("k"), Some("k"), Some("l"), Some("m"), None, None];
    let (mut relay, read) = started(&bench, &keys).await;
    let step = relay.step().to(read[1].position).aside(&read[0], retry(LATER));
    step.aside(&read[1], Aside::Behind).aside(&read[3], dead(OnDead::Block)).send().await;
    let step = relay.step().to(read[6].position).done(&read[0]).aside(&read[2], Aside::Behind);
    let step = step.aside(&read[4], Aside::Later { delay: LATER }).aside(&read[6], Aside::Unrouted);
    let settlement = step.aside(&read[5], retry(LATER)).build();
    let first = bench.settle_messages(settlement.clone()).await;
    let comparable =
        |stuck: Stuck| (stuck.due_in.map(|due| due > LATER / 2), Stuck { due_in: None, ..stuck });
    let stuck = bench.all_stuck().await.into_iter().map(comparable).collect::<Vec<_>>();
    let again = bench.settle_messages(settlement).await;
    assert_eq!(again.late, first.late);
    let now = bench.all_stuck().await.into_iter().map(comparable).collect::<Vec<_>>();
    assert_eq!(now, stuck);
    let status = bench.topic("t").await;
    assert_eq!((status.outstanding, status.dead), (5, 1));
    assert_eq!((status.retrying + status.waiting, status.unrouted), (4, 1));
    // One of them was set aside behind the first of its key, which is done.
    assert!(status.retrying == 2 || !bench.has_lines(), "{status:?}");
}

pub(crate) async fn what_was_set_aside_is_not_read_again(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("a"), None, Some("b")]).await;
    let step = relay.step().to(read[2].position).aside(&read[0], retry(AT_ONCE));
    step.aside(&read[1], retry(LATER)).send().await;
    assert_eq!(relay.read().await, []);
    let due = relay.due().await;
    assert_eq!(ids(&due), [read[0].id.clone()], "one is due, the other later");
    let origin = Origin::Aside {
        attempts: 1,
        sink: super::relay::SINK.to_owned(),
        waited_for: StuckState::Retry,
    };
    assert_eq!(due[0], Message { origin, ..read[0].clone() });
    assert_eq!(relay.due().await, due, "until it is settled");
    let settled = relay.step().done(&due[0]).send().await;
    assert_eq!(settled.freed.len(), 1);
    assert_eq!(relay.due().await, []);
    assert_eq!(bench.states().await, [(read[1].id.clone(), StuckState::Retry)]);
    assert_eq!(relay.step().done(&due[0]).send().await.freed, [], "it is done already");
}

pub(crate) async fn a_retry_that_fails_again_counts_on(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k")]).await;
    let failed = |attempts, reason: &str| Aside::Retry {
        attempts,
        reason: reason.to_owned(),
        delay: AT_ONCE,
    };
    for (attempts, reason) in [(1, "first"), (2, "second"), (3, "it's \"third\"\n日")] {
        relay.step().to(read[0].position).aside(&read[0], failed(attempts, reason)).send().await;
        let stuck = bench.all_stuck().await.remove(0);
        assert_eq!((stuck.attempts, stuck.reason.as_str()), (attempts, reason));
        assert_eq!((stuck.state, stuck.due_in), (StuckState::Retry, Some(AT_ONCE)));
    }
    relay.step().aside(&read[0], dead(OnDead::Park)).send().await;
    let stuck = bench.all_stuck().await.remove(0);
    assert_eq!((stuck.state, stuck.then, stuck.due_in), (StuckState::Dead, OnDead::Park, None));
    assert_eq!((stuck.topic.as_str(), stuck.key.as_deref()), ("t", Some("k")));
    assert_eq!(relay.due().await, [], "the dead are not due");
}

pub(crate) async fn later_becomes_due_and_holds_nothing(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("k"), None]).await;
    let step = relay.step().aside(&read[0], Aside::Later { delay: LATER });
    let settled = step.aside(&read[2], Aside::Later { delay: AT_ONCE }).send().await;
    assert!(settled.freed.iter().all(|key| Some(key.key) == read[0].key_hash()));
    assert_eq!(ids(&relay.due().await), [read[2].id.clone()]);
    relay.step().aside(&read[1], Aside::Behind).send().await;
    assert_eq!(
        bench.states().await[1],
        (read[1].id.clone(), StuckState::Retry),
        "nothing is before it"
    );
    relay.step().aside(&read[0], Aside::Later { delay: AT_ONCE }).send().await;
    let due = relay.due().await;
    assert_eq!(ids(&due), ids(&read));
    assert!(matches!(due[0].origin, Origin::Aside { attempts: 0, .. }));
}

pub(crate) async fn a_thousand_are_set_aside_and_done_at_once(bench: Bench) {
    let message = |n: usize| tidegate_core::NewMessage {
        key: (!n.is_multiple_of(3)).then(|| format!("key {}", n % 40)),
        ..new_message("t", None)
    };
    bench.publish((0..1_000).map(message).collect()).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let step = relay.step().to(read[999].position);
    read.iter().fold(step, |step, m| step.aside(m, Aside::Behind)).send().await;
    assert_eq!(bench.all_stuck().await.len(), 1_000);
    let due = relay.due().await;
    assert_eq!(due.len(), 1_000, "heads with those behind them");
    let step = due.iter().fold(relay.step(), |step, message| step.done(message));
    step.send().await;
    assert_eq!(bench.all_stuck().await, []);
}
