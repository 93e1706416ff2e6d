//! Destinations within a sink hold up each other no more than sinks do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::{testing::*, *};
use crate::Stop;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

const TOPICS: usize = 10;
const EACH: usize = 1_500;

/// How long nine of ten topics take, and how long all of them, if the first gets no answer for so long.
async fn deliver_all(hangs_for: Duration) -> (Duration, Duration) {
    let until = Instant::now() + hangs_for;
    let sink = Arc::new(Fake {
        by_topic: true,
        one_by_one: true,
        takes: Duration::from_millis(20),
        hangs: Some(("c0".to_owned(), until)),
        ..Fake::default()
    });
    let store = store();
    for n in 0..EACH {
        let names: Vec<(String, String)> =
            (0..TOPICS).map(|c| (format!("c{c}"), format!("c{c}-{}", n % 400))).collect();
        let text = n.to_string();
        let all: Vec<_> = names.iter().map(|(topic, key)| (&**topic, &**key, &*text)).collect();
        publish(&store, &all).await;
    }
    let plan = plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default());
    let relay = Relay::new(Arc::new(store.clone()), plan, options("r", false)).unwrap();
    let (stop, began) = (Stop::new(), Instant::now());
    let others = || {
        let seen = sink.seen.lock().unwrap();
        seen.iter().filter(|(key, _)| !key.starts_with("c0-")).count()
    };
    let watch = async {
        while others() < (TOPICS - 1) * EACH {
            sleep(Duration::from_millis(50)).await;
        }
        let nine = began.elapsed();
        while sink.count() < TOPICS * EACH {
            sleep(Duration::from_millis(200)).await;
        }
        stop.stop();
        (nine, began.elapsed())
    };
    let (ran, times) = tokio::join!(relay.run(stop.clone()), watch);
    assert_eq!((ran.unwrap().counts.dead, outstanding(&store).await), (0, 0));
    for c in 0..TOPICS {
        for k in 0..400 {
            let seen = sink.of_key(&format!("c{c}-{k}"));
            let expected: Vec<String> = (k..EACH).step_by(400).map(|n| n.to_string()).collect();
            assert_eq!(seen, expected, "order, and each once");
        }
    }
    times
}

#[tokio::test(start_paused = true)]
async fn nine_of_ten_destinations_keep_their_speed_while_one_hangs() {
    let (usual, _) = deliver_all(Duration::ZERO).await;
    let (nine, all) = deliver_all(Duration::from_secs(100)).await;
    assert!(nine.as_secs_f64() * 0.9 <= usual.as_secs_f64(), "{nine:?} instead of {usual:?}");
    assert!(all < Duration::from_secs(400), "{all:?}: it came back after 100 s");
}

#[tokio::test(start_paused = true)]
async fn a_request_has_one_message_of_each_key_where_a_sink_needs_that() {
    let sink = Arc::new(Fake { one_per_key: true, ..Fake::default() });
    let store = store();
    let texts: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    let keys = ["a", "b", "c", ""];
    let all: Vec<_> =
        texts.iter().enumerate().map(|(n, it)| ("t", keys[n % 4], it.as_str())).collect();
    publish(&store, &all).await;
    drain(&store, plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default())).await;
    assert_eq!(sink.count(), 60);
    for (at, key) in ["a", "b", "c"].into_iter().enumerate() {
        let expected: Vec<String> = (at..60).step_by(4).map(|n| n.to_string()).collect();
        assert_eq!(sink.of_key(key), expected);
    }
}
