//! Relays whose stores, sinks and routes fail or change under them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::{flawed::Flawed, testing::*, *};
use crate::Stop;
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tidegate_core::{
    InspectOutbox, NewMessage, Outbox, Publish, RetryPolicy, WorkerId,
    outbox::{AuditLine, GiveBack, Selection, Share},
};
use tokio::time::{Instant, sleep};

/// Topics and sinks.
type Routes<'a> = &'a [(&'a str, &'a str)];

const NEVER: Duration = Duration::from_secs(1_000_000);

fn retries(max_attempts: u32) -> TopicPolicy {
    let retry = RetryPolicy { max_attempts, ..RetryPolicy::default() };
    TopicPolicy { retry, ..TopicPolicy::default() }
}

/// Runs a relay until `done`.
async fn until(relay: Relay, done: impl AsyncFn() -> bool) -> RelayReport {
    let stop = Stop::new();
    let watch = async {
        while !done().await {
            sleep(Duration::from_millis(50)).await;
        }
        stop.stop();
    };
    tokio::join!(relay.run(stop.clone()), watch).0.unwrap()
}

#[tokio::test(start_paused = true)]
async fn routes_may_change_while_a_sink_lags() {
    let store = store();
    let hangs = || Arc::new(Fake { takes: NEVER, ..Fake::default() });
    let (one, two, three) = (Arc::new(Fake::default()), Arc::new(Fake::default()), hangs());
    let topics = ["a.x", "a.y", "b.x", "b.y"];
    let keys: Vec<String> = (0..100).map(|n| format!("k{n}")).collect();
    // Under each plan, other topics hang.
    let plans: [(&Arc<Fake>, Routes<'_>); 4] = [
        (&hangs(), &[("a.*", "hangs"), ("*", "one")]),
        (&hangs(), &[("*.x", "hangs"), ("b.*", "two"), ("*", "one")]),
        (&three, &[("a.y", "hangs"), ("*", "two")]),
        (&Arc::new(Fake::default()), &[("*", "one"), ("a.x", "two")]),
    ];
    for (round, (hanging, routes)) in plans.into_iter().enumerate() {
        let text = round.to_string();
        for topic in topics {
            let all: Vec<_> = keys.iter().map(|key| (topic, key.as_str(), text.as_str())).collect();
            publish(&store, &all).await;
        }
        let sinks = [("hangs", hanging), ("one", &one), ("two", &two)];
        let plan = plan(&sinks, routes, TopicPolicy::default());
        let (began, drain) = (Instant::now(), round == 3);
        let grace = Duration::from_secs(1);
        let options = RelayOptions { grace, ..options("r", drain) };
        let relay = Relay::new(Arc::new(store.clone()), plan, options).unwrap();
        until(relay, async || began.elapsed() > Duration::from_secs(20)).await;
    }
    assert_eq!(outstanding(&store).await, 0);
    assert_eq!(one.count() + two.count(), 4 * 4 * 100, "each once");
    for key in &keys {
        let of_topics = [one.of_key(key), two.of_key(key)].concat();
        assert_eq!(of_topics.len(), 16, "{key}: {of_topics:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_set_aside_follows_its_route() {
    let (store, old, new) = (store(), Arc::new(Fake::default()), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "flaky"), ("t", "a", "2"), ("u", "b", "flaky2")]).await;
    let plan_of = |sink: &Arc<Fake>, name: &str, topic: &str| {
        plan(&[(name, sink)], &[(topic, name)], retries(100))
    };
    let relay = Relay::new(Arc::new(store.clone()), plan_of(&old, "old", "*"), options("r", false));
    until(relay.unwrap(), async || outstanding(&store).await == 3 && !old.tries().is_empty()).await;
    // The sink has another name now, and one topic goes nowhere.
    publish(&store, &[("t", "a", "3")]).await;
    drain(&store, plan_of(&new, "new", "t")).await;
    assert_eq!(new.of_key("a"), ["flaky", "2", "3"]);
    assert_eq!((old.count(), outstanding(&store).await), (0, 1));
    drain(&store, plan_of(&new, "new", "*")).await;
    assert_eq!((new.of_key("b"), outstanding(&store).await), (vec!["flaky2".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_message_waits_for_those_before_it() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    let at_last = |n: &str| NewMessage {
        delay: Some(Duration::from_millis(500)),
        ..message("t", Some("a"), n)
    };
    publish(&store, &[("t", "a", "flaky")]).await;
    store.publish(vec![at_last("2")]).await.unwrap();
    publish(&store, &[("t", "a", "3")]).await;
    drain(&store, plan(&[("s", &sink)], &[("*", "s")], retries(10))).await;
    assert_eq!(sink.of_key("a"), ["flaky", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_retried_message_does_not_pull_others_past_one_that_waits() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "bad"), ("t", "a", "flaky"), ("t", "a", "3")]).await;
    let plan = plan(&[("s", &sink)], &[("*", "s")], retries(10));
    let relay = Relay::new(Arc::new(store.clone()), plan.clone(), options("r", false)).unwrap();
    until(relay, async || sink.tries().contains_key("flaky")).await;
    assert_eq!(store.retry_dead(Selection::default(), &AuditLine::default()).await.unwrap(), 1);
    drain(&store, plan).await;
    assert_eq!(sink.of_key("a"), ["flaky", "3"]);
}

#[tokio::test(start_paused = true)]
async fn lanes_change_hands_while_a_sink_is_not_there() {
    let store = store();
    let back = Instant::now() + Duration::from_secs(50);
    let slow = Arc::new(Fake { absent_until: Some(back), ..Fake::default() });
    let fast = Arc::new(Fake::default());
    let relay = |name: &str| {
        let routes = [("slow", "slow"), ("*", "fast")];
        let plan = plan(&[("slow", &slow), ("fast", &fast)], &routes, retries(1));
        Relay::new(Arc::new(store.clone()), plan, options(name, false)).unwrap()
    };
    let keys: Vec<String> = (0..100).map(|n| format!("k{n}")).collect();
    let rounds = 50;
    let (one, two) = (relay("one"), relay("two"));
    let stop = Stop::new();
    let feed = async {
        for n in 0..rounds {
            let text = n.to_string();
            let both = |key| [("slow", key, text.as_str()), ("fast", key, text.as_str())];
            let all: Vec<_> = keys.iter().flat_map(|key| both(key.as_str())).collect();
            publish(&store, &all).await;
            sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(fast.count(), rounds * 100, "it is not held up");
        let relays = store.outbox().await.unwrap().relays;
        assert_eq!(relays.iter().map(|relay| relay.lanes).collect::<Vec<_>>(), [32, 32]);
        while slow.count() < rounds * 100 {
            sleep(Duration::from_millis(500)).await;
        }
        stop.stop();
    };
    let later = async {
        sleep(Duration::from_secs(10)).await;
        two.run(stop.clone()).await.unwrap()
    };
    let (first, second, ()) = tokio::join!(one.run(stop.clone()), later, feed);
    assert_eq!(first.unwrap().counts.dead + second.counts.dead, 0);
    let expected: Vec<String> = (0..rounds).map(|n| n.to_string()).collect();
    assert!(keys.iter().all(|key| slow.of_key(key) == expected && fast.of_key(key) == expected));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_sink_is_not_sent_when_its_lane_is_lost() {
    let store = store();
    let back = Instant::now() + Duration::from_secs(100);
    let sink = Arc::new(Fake { absent_until: Some(back), ..Fake::default() });
    publish(&store, &[("t", "a", "1"), ("t", "b", "1")]).await;
    let flawed = Arc::new(Flawed::new(&store));
    flawed.shares.store(1, Relaxed);
    let plan = plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default());
    let relay = Relay::new(flawed, plan, options("r", false)).unwrap();
    let end = Instant::now() + Duration::from_secs(300);
    let report = until(relay, async || Instant::now() > end).await;
    assert_eq!((report.counts.delivered, sink.count()), (0, 0));
    assert!(sink.tries().is_empty(), "{:?}", sink.tries());
}

#[tokio::test(start_paused = true)]
async fn a_settlement_whose_answer_is_lost_sends_nothing_twice() {
    let (store, sink) =
        (store(), Arc::new(Fake { takes: Duration::from_secs(3), ..Fake::default() }));
    publish(&store, &[("t", "a", "flaky"), ("t", "b", "1"), ("t", "a", "2")]).await;
    let flawed = Arc::new(Flawed::new(&store));
    flawed.lost_answers.store(20, Relaxed);
    let retry = RetryPolicy { base: Duration::ZERO, cap: Duration::ZERO, ..RetryPolicy::default() };
    let policy = TopicPolicy { retry, ..TopicPolicy::default() };
    let plan = plan(&[("s", &sink)], &[("*", "s")], policy);
    let relay = Relay::new(flawed, plan, options("r", true)).unwrap();
    relay.run(Stop::new()).await.unwrap();
    assert_eq!((sink.of_key("a"), sink.of_key("b").len()), (vec!["flaky".into(), "2".into()], 1));
    assert_eq!(sink.tries()["flaky"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_ends_the_relay_at_once() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "1")]).await;
    let flawed = Arc::new(Flawed::new(&store));
    flawed.refuses.store(true, Relaxed);
    let plan = plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default());
    let relay = Relay::new(flawed, plan, options("r", false)).unwrap();
    let began = Instant::now();
    assert!(matches!(relay.run(Stop::new()).await, Err(RelayError::Store(_))));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(outstanding(&store).await, 1, "nothing is passed over");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_answers_for_too_few_is_tried_again() {
    let (store, sink) = (store(), Arc::new(Fake { forgets: 2.into(), ..Fake::default() }));
    publish(&store, &[("t", "a", "1"), ("t", "a", "2"), ("t", "b", "1")]).await;
    let counts = drain(&store, plan(&[("s", &sink)], &[("*", "s")], retries(1))).await;
    assert_eq!((counts.delivered, counts.dead), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn lanes_stay_with_a_relay_that_stops_until_its_deliveries_are_back() {
    let (store, sink) =
        (store(), Arc::new(Fake { takes: Duration::from_secs(40), ..Fake::default() }));
    publish(&store, &[("t", "a", "1"), ("t", "a", "2")]).await;
    let relay = |name: &str| {
        let options = RelayOptions { grace: Duration::from_secs(60), ..options(name, false) };
        let plan = plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default());
        Relay::new(Arc::new(store.clone()), plan, options).unwrap()
    };
    let (stop, began) = (Stop::new(), Instant::now());
    let first = relay("one");
    let stopped = async {
        sleep(Duration::from_secs(1)).await;
        stop.stop();
    };
    let other = until(relay("two"), async || began.elapsed() > Duration::from_secs(120));
    let (ran, (), other) = tokio::join!(first.run(stop.clone()), stopped, other);
    assert_eq!((ran.unwrap().counts.delivered, other.counts.delivered), (2, 0));
    assert_eq!(sink.of_key("a"), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_tries_again_goes_where_routes_lead_now() {
    let (store, old, new) = (store(), Arc::new(Fake::default()), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "flaky"), ("t", "a", "2")]).await;
    let sinks = [("old", &old), ("new", &new)];
    drain(&store, plan(&sinks, &[("t", "old"), ("*", "new")], retries(1))).await;
    assert_eq!((old.of_key("a"), outstanding(&store).await), (vec!["2".to_owned()], 0));
    store.retry_dead(Selection::default(), &AuditLine::default()).await.unwrap();
    drain(&store, plan(&sinks, &[("t", "new"), ("*", "old")], retries(10))).await;
    assert_eq!((new.of_key("a"), old.tries()["flaky"]), (vec!["flaky".to_owned()], 1));
}

/// A sink that says so is not asked again. Its messages wait, those of others do not, and a drain ends.
#[tokio::test(start_paused = true)]
async fn a_sink_that_is_gone_for_good_is_left_alone() {
    for others in [true, false] {
        let store = store();
        let gone = Arc::new(Fake { gone_after: Some(1), one_by_one: true, ..Fake::default() });
        let there = Arc::new(Fake { takes: Duration::from_millis(50), ..Fake::default() });
        let texts: Vec<String> = (0..500).map(|n| n.to_string()).collect();
        let topics = if others { ["gone", "there"] } else { ["gone", "gone"] };
        let all: Vec<_> =
            texts.iter().enumerate().map(|(n, it)| (topics[n % 2], "k", it.as_str())).collect();
        publish(&store, &all).await;
        let routes = [("gone", "gone"), ("*", "there")];
        let sinks = [("gone", &gone), ("there", &there)];
        let plan = plan(&sinks, &routes, TopicPolicy::default());
        let relay = Relay::new(Arc::new(store.clone()), plan, options("r", true)).unwrap();
        let began = Instant::now();
        let report = relay.run(Stop::new()).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        let delivered = if others { 251 } else { 1 };
        assert_eq!(report.counts.delivered, delivered);
        assert_eq!((report.counts.dead, report.counts.retried), (0, 0), "none is at fault");
        assert_eq!(report.gone, [("gone".to_owned(), "closed".to_owned())]);
        assert_eq!(*gone.calls.lock().unwrap(), [1, 1], "it was asked once more");
        assert_eq!(outstanding(&store).await, 500 - delivered, "nothing is lost");
    }
}

/// What a relay that crashed has left is waited for, although another sink is gone.
#[tokio::test(start_paused = true)]
async fn a_drain_with_a_sink_that_is_gone_waits_for_lanes_of_others() {
    let store = store();
    let lease = Duration::from_secs(5);
    let crashed = WorkerId("crashed".to_owned());
    let (epoch, held, routes) = Default::default();
    let share = Share { relay: crashed.clone(), epoch, held, routes, lease };
    let lanes = store.share_lanes(share).await.unwrap().gained;
    let lanes = lanes.iter().take(lanes.len() / 2).map(|gained| gained.lease).collect();
    store.give_back_lanes(GiveBack { relay: crashed, lanes, ends: false }).await.unwrap();

    let keys: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let topics = ["gone", "there"];
    let all: Vec<_> =
        keys.iter().enumerate().map(|(n, key)| (topics[n % 2], key.as_str(), "x")).collect();
    publish(&store, &all).await;
    let (gone, there) = (Fake { gone_after: Some(0), ..Fake::default() }, Fake::default());
    let (gone, there) = (Arc::new(gone), Arc::new(there));
    let sinks = [("gone", &gone), ("there", &there)];
    let plan = plan(&sinks, &[("gone", "gone"), ("*", "there")], TopicPolicy::default());
    let relay = Relay::new(Arc::new(store.clone()), plan, options("r", true)).unwrap();
    let report = relay.run(Stop::new()).await.unwrap();
    assert_eq!((report.counts.delivered, outstanding(&store).await), (100, 100));
}
