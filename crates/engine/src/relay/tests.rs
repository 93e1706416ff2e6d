use super::{testing::*, *};
use crate::Stop;
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    InspectOutbox, NewMessage, Publish, RetryPolicy,
    outbox::{AuditLine, OnDead, Selection, StuckQuery, StuckState},
};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn everything_is_delivered_in_order_of_its_key() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    let keys = ["a", "b", "c", ""];
    let texts: Vec<String> = (0..2_000).map(|n| n.to_string()).collect();
    let all: Vec<_> =
        texts.iter().enumerate().map(|(n, it)| ("t", keys[n % 4], it.as_str())).collect();
    publish(&store, &all).await;
    let counts = drain(&store, plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default())).await;
    assert_eq!((counts.delivered, sink.count(), outstanding(&store).await), (2_000, 2_000, 0));
    for (n, key) in ["a", "b", "c"].into_iter().enumerate() {
        let expected: Vec<String> = (0..500).map(|it| (it * 4 + n).to_string()).collect();
        assert_eq!(sink.of_key(key), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn order_within_a_key_survives_retries_and_other_keys_go_on() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "1"), ("t", "a", "flaky"), ("t", "b", "1"), ("t", "a", "3")])
        .await;
    let began = Instant::now();
    let relay = {
        let plan = plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default());
        Relay::new(Arc::new(store.clone()), plan, options("r", false)).unwrap()
    };
    let stop = Stop::new();
    let later = async {
        while sink.of_key("b").is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
        // While the key waits, more of it waits, too; other keys do not.
        publish(&store, &[("t", "a", "4"), ("t", "b", "2")]).await;
        while sink.count() < 6 {
            sleep(Duration::from_millis(10)).await;
        }
        publish(&store, &[("t", "a", "5")]).await;
        while sink.count() < 7 {
            sleep(Duration::from_millis(10)).await;
        }
        stop.stop();
    };
    let (ran, ()) = tokio::join!(relay.run(stop.clone()), later);
    assert_eq!(sink.of_key("a"), ["1", "flaky", "3", "4", "5"]);
    assert_eq!(sink.of_key("b"), ["1", "2"]);
    assert_eq!((ran.unwrap().counts.retried, outstanding(&store).await), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dead_message_is_found_alone_and_its_key_goes_on_by_policy() {
    for refuses in [false, true] {
        for (then, expected) in [
            (OnDead::Skip, vec!["1", "3", "4"]),
            (OnDead::Block, vec!["1"]),
            (OnDead::Park, vec!["1"]),
        ] {
            let (store, sink) = (store(), Arc::new(Fake { refuses, ..Fake::default() }));
            let others: Vec<String> = (0..150).map(|n| format!("k{n}")).collect();
            let all: Vec<_> = others.iter().map(|key| ("t", key.as_str(), "x")).collect();
            publish(&store, &all).await;
            publish(
                &store,
                &[("t", "a", "1"), ("t", "a", "bad"), ("t", "a", "3"), ("t", "a", "4")],
            )
            .await;
            let policy = TopicPolicy { on_dead: then, ..TopicPolicy::default() };
            let counts = drain(&store, plan(&[("s", &sink)], &[("*", "s")], policy)).await;
            assert_eq!(
                (sink.of_key("a"), counts.dead),
                (expected.iter().map(ToString::to_string).collect(), 1)
            );
            assert_eq!(sink.count(), 150 + expected.len());
            let topics = store.outbox().await.unwrap().topics;
            let (waits, dead) = (topics[0].waiting, topics[0].dead);
            match then {
                OnDead::Skip => assert_eq!((waits, dead), (0, 1)),
                OnDead::Block => assert_eq!((waits, dead), (2, 1)),
                OnDead::Park => assert_eq!((waits, dead), (0, 3)),
            }
            // Dropped by somebody, the rest of the key goes on in order.
            store.drop_dead(Selection::default(), &AuditLine::default()).await.unwrap();
            drain(&store, plan(&[("s", &sink)], &[("*", "s")], policy)).await;
            assert_eq!(sink.of_key("a"), ["1", "3", "4"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_hangs_holds_up_no_other() {
    let store = store();
    let slow = Arc::new(Fake { takes: Duration::from_secs(40), ..Fake::default() });
    let fast = Arc::new(Fake { takes: Duration::from_millis(5), ..Fake::default() });
    let plan = plan(
        &[("slow", &slow), ("fast", &fast)],
        &[("slow.*", "slow"), ("*", "fast")],
        TopicPolicy::default(),
    );
    let relay = Relay::new(Arc::new(store.clone()), plan.clone(), options("r", false)).unwrap();
    let (stop, began) = (Stop::new(), Instant::now());
    let feed = async {
        for round in 0..60 {
            let texts: Vec<String> = (0..20).map(|n| format!("{round}-{n}")).collect();
            let all: Vec<_> = texts
                .iter()
                .flat_map(|it| [("slow.x", "k", it.as_str()), ("fast", "k", it.as_str())])
                .collect();
            publish(&store, &all).await;
            sleep(Duration::from_millis(100)).await;
        }
        while fast.count() < 1_200 {
            sleep(Duration::from_millis(10)).await;
        }
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        // What the fast one took is settled, although the slow one has nothing done.
        sleep(Duration::from_millis(100)).await;
        let topics = store.outbox().await.unwrap().topics;
        let left: Vec<_> = topics.iter().map(|it| (it.topic.as_str(), it.outstanding)).collect();
        assert_eq!(left, [("slow.x", 1_200)]);
        stop.stop();
    };
    let (ran, ()) = tokio::join!(relay.run(stop.clone()), feed);
    ran.unwrap();
    // Whoever comes next finds all of the slow one's messages, and none of the other's.
    let slow = Arc::new(Fake::default());
    let plan = Plan {
        sinks: vec![
            PlannedSink { sink: slow.clone(), ..plan.sinks[0].clone() },
            plan.sinks[1].clone(),
        ],
        ..plan
    };
    drain(&store, plan).await;
    assert_eq!((slow.count(), fast.count()), (1_200, 1_200));
    assert_eq!(outstanding(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_not_there_uses_up_no_attempt() {
    let store = store();
    let back = Instant::now() + Duration::from_secs(100);
    let sink = Arc::new(Fake { absent_until: Some(back), ..Fake::default() });
    publish(&store, &[("t", "a", "1"), ("t", "a", "2"), ("t", "b", "1")]).await;
    let policy = TopicPolicy {
        retry: RetryPolicy { max_attempts: 1, ..RetryPolicy::default() },
        ..TopicPolicy::default()
    };
    let counts = drain(&store, plan(&[("s", &sink)], &[("*", "s")], policy)).await;
    assert_eq!((counts.delivered, counts.dead, counts.retried), (3, 0, 0));
    assert_eq!(sink.of_key("a"), ["1", "2"]);
    assert!(sink.calls.lock().unwrap().len() < 20, "half-open probes, no hammering");
}

#[tokio::test(start_paused = true)]
async fn what_no_route_takes_is_kept_and_delivered_when_one_does() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    publish(&store, &[("new", "a", "1"), ("old", "a", "x"), ("new", "a", "2")]).await;
    let counts =
        drain(&store, plan(&[("s", &sink)], &[("old", "s")], TopicPolicy::default())).await;
    assert_eq!((counts.delivered, counts.unrouted), (1, 2));
    assert_eq!(outstanding(&store).await, 2);
    publish(&store, &[("new", "a", "3")]).await;
    drain(&store, plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default())).await;
    assert_eq!(sink.of_key("a"), ["x", "1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_not_delivered_before_its_time_and_holds_up_nothing() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    let delayed =
        NewMessage { delay: Some(Duration::from_secs(60)), ..message("t", Some("a"), "late") };
    store.publish(vec![delayed]).await.unwrap();
    publish(&store, &[("t", "a", "1")]).await;
    let began = Instant::now();
    drain(&store, plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default())).await;
    assert_eq!(sink.of_key("a"), ["1", "late"]);
    assert!(began.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn only_the_last_write_of_an_entity_is_sent_if_the_topic_coalesces() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "1"), ("t", "b", "1"), ("t", "a", "2"), ("t", "a", "3")]).await;
    // If the last one is bad, those that it stood for are sent after all.
    publish(&store, &[("t", "c", "1"), ("t", "c", "2"), ("t", "c", "bad")]).await;
    let policy = TopicPolicy { coalesce: true, ..TopicPolicy::default() };
    let counts = drain(&store, plan(&[("s", &sink)], &[("*", "s")], policy)).await;
    assert_eq!((sink.of_key("a"), sink.of_key("b")), (vec!["3".to_owned()], vec!["1".to_owned()]));
    assert_eq!(sink.of_key("c"), ["1", "2"]);
    assert_eq!((counts.delivered, counts.coalesced, counts.dead), (4, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn all_that_waits_of_a_key_is_one_write_also_for_sinks_that_take_one_at_a_time() {
    let (store, sink) = (store(), Arc::new(Fake { one_by_one: true, ..Fake::default() }));
    let numbers: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let all: Vec<_> = numbers.iter().map(|number| ("t", "a", number.as_str())).collect();
    publish(&store, &all).await;
    publish(&store, &[("t", "b", "1"), ("u", "a", "1"), ("t", "a", "300")]).await;
    let policy = TopicPolicy { coalesce: true, ..TopicPolicy::default() };
    let counts = drain(&store, plan(&[("s", &sink)], &[("*", "s")], policy)).await;
    // Another topic of the same key comes between: its order is kept.
    assert_eq!(sink.of_key("a"), ["299", "1", "300"]);
    assert_eq!((counts.delivered, counts.coalesced), (4, 299));
}

#[tokio::test(start_paused = true)]
async fn groups_are_of_one_topic_if_the_sink_wants_it_so() {
    let (store, sink) = (store(), Arc::new(Fake { by_topic: true, ..Fake::default() }));
    let topics: Vec<String> = (0..10).map(|n| format!("t{n}")).collect();
    let all: Vec<_> = (0..300).map(|n| (topics[n % 10].as_str(), "", "x")).collect();
    publish(&store, &all).await;
    // One key through several topics stays in order.
    publish(&store, &[("t1", "a", "1"), ("t2", "a", "2"), ("t1", "a", "3")]).await;
    drain(&store, plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default())).await;
    assert_eq!((sink.count(), sink.of_key("a")), (303, vec!["1".into(), "2".into(), "3".into()]));
    assert!(sink.calls.lock().unwrap().len() <= 14);
}

#[tokio::test(start_paused = true)]
async fn relays_that_come_and_go_share_the_lanes_and_keep_order() {
    let (store, sink) =
        (store(), Arc::new(Fake { takes: Duration::from_millis(3), ..Fake::default() }));
    let relay = |name: &str| {
        let plan = plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default());
        Relay::new(Arc::new(store.clone()), plan, options(name, false)).unwrap()
    };
    let (one, two) = (relay("one"), relay("two"));
    let (stop_one, stop_two) = (Stop::new(), Stop::new());
    let keys: Vec<String> = (0..50).map(|n| format!("k{n}")).collect();
    let feed = async {
        for n in 0..400 {
            let text = n.to_string();
            let all: Vec<_> = keys.iter().map(|key| ("t", key.as_str(), text.as_str())).collect();
            publish(&store, &all).await;
            sleep(Duration::from_millis(100)).await;
            if n == 250 {
                let relays = store.outbox().await.unwrap().relays;
                assert_eq!(relays.iter().map(|relay| relay.lanes).collect::<Vec<_>>(), [32, 32]);
                stop_one.stop();
            }
        }
        while sink.count() < 20_000 {
            sleep(Duration::from_millis(100)).await;
        }
        stop_two.stop();
    };
    let later = async {
        sleep(Duration::from_secs(5)).await;
        two.run(stop_two.clone()).await
    };
    let (first, second, ()) = tokio::join!(one.run(stop_one.clone()), later, feed);
    let delivered = first.unwrap().counts.delivered + second.unwrap().counts.delivered;
    assert_eq!((delivered, sink.count()), (20_000, 20_000), "none twice");
    let expected: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    assert!(keys.iter().all(|key| sink.of_key(key) == expected));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_makes_a_sink_panic_is_found_alone() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "1"), ("t", "b", "panic"), ("t", "c", "1"), ("t", "b", "2")])
        .await;
    let counts = drain(&store, plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default())).await;
    assert_eq!(
        (counts.dead, sink.of_key("c").len(), sink.of_key("b")),
        (1, 1, vec!["2".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_and_the_reason_is_kept() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "flaky")]).await;
    let retry = RetryPolicy { max_attempts: 2, ..RetryPolicy::default() };
    let policy = TopicPolicy { retry, ..TopicPolicy::default() };
    drain(&store, plan(&[("s", &sink)], &[("*", "s")], policy)).await;
    let query = StuckQuery { state: Some(StuckState::Dead), limit: 10, ..StuckQuery::default() };
    let dead = store.stuck(query).await.unwrap();
    assert_eq!(
        (dead[0].attempts, dead[0].reason.as_str(), dead[0].sink.as_str()),
        (2, "flaky", "s")
    );
    assert_eq!(store.retry_dead(Selection::default(), &AuditLine::default()).await.unwrap(), 1);
    drain(&store, plan(&[("s", &sink)], &[("*", "s")], policy)).await;
    assert_eq!(sink.of_key("a"), ["flaky"]);
}
