//! Destinations within a sink hold up each other no more than sinks do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::{testing::*, *};
use crate::Stop;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

const TOPICS: usize = 10;
const EACH: usize = 1_500;

/// From when to when the speed is measured.
const MEASURED: std::ops::Range<Duration> = Duration::from_secs(2)..Duration::from_secs(5);

/// How many messages of nine of ten topics are delivered while the first gets no answer, from this time for
/// 100 s; and how long all of them take.
async fn deliver_all(hangs_from: Option<Duration>) -> (usize, Duration) {
    let start = Instant::now();
    let hangs = hangs_from.map(|from| {
        let from = start + from;
        ("c0".to_owned(), from..from + Duration::from_secs(100))
    });
    let takes = Duration::from_millis(20);
    let sink = Arc::new(Fake { by_topic: true, one_by_one: true, takes, hangs, ..Fake::default() });
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
    let stop = Stop::new();
    let others = || {
        let seen = sink.seen.lock().unwrap();
        seen.iter().filter(|(key, _)| !key.starts_with("c0-")).count()
    };
    let watch = async {
        sleep(MEASURED.start).await;
        let before = others();
        sleep(MEASURED.end - MEASURED.start).await;
        let nine = others() - before;
        while sink.count() < TOPICS * EACH {
            sleep(Duration::from_millis(200)).await;
        }
        stop.stop();
        (nine, start.elapsed())
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
    let (usual, _) = deliver_all(None).await;
    assert!(usual > 3_000, "{usual}");
    for from in [Duration::ZERO, MEASURED.start] {
        let (nine, all) = deliver_all(Some(from)).await;
        assert!(nine * 10 >= usual * 9, "{nine} instead of {usual}, from {from:?}");
        assert!(all < Duration::from_secs(400), "{all:?}: it came back after 100 s");
    }
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
