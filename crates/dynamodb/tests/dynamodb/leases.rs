//! Several relays at once.

use crate::fixture::{Fixture, Running, message, recorder};
use std::time::{Duration, Instant};
use tidegate_core::{InspectOutbox, NewMessage, Publish};

/// Looks until something holds.
pub async fn until(holds: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < Duration::from_secs(120), "waited in vain");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn two_relays_share_and_a_third_takes_over() {
    let fixture = Fixture::new(1).await;
    let (store, sink) = (fixture.open(""), recorder());
    let one = Running::start(fixture.open(""), "one", &sink);
    let two = Running::start(fixture.open(""), "two", &sink);
    let lanes = async |expected: &[(&str, u64)]| {
        let relays = store.outbox().await.unwrap().relays;
        let found: Vec<(&str, u64)> =
            relays.iter().map(|it| (it.relay.0.as_str(), it.lanes)).collect();
        found == expected
    };
    until(async || lanes(&[("one", 32), ("two", 32)]).await).await;
    one.kill();
    let three = Running::start(fixture.open(""), "three", &sink);
    until(async || lanes(&[("three", 32), ("two", 32)]).await).await;
    two.stop().await;
    until(async || lanes(&[("three", 64)]).await).await;
    store.publish((0..100).map(|n| message("t", Some(&n.to_string()), n)).collect()).await.unwrap();
    until(async || sink.payloads().len() == 100).await;
    assert_eq!(sink.got().len(), 100);
    three.stop().await;
    assert!(store.outbox().await.unwrap().relays.is_empty());
}

/// Relays are killed while they work, with more outstanding than a page: nothing is lost, no key is out of order, and
/// no stale copy comes last.
#[tokio::test]
async fn kills_lose_nothing_and_keep_the_order_of_keys() {
    let fixture = Fixture::new(2).await;
    let (publisher, sink) = (fixture.open("&shards=5"), recorder());
    let total = 3_000;
    let messages: Vec<NewMessage> = (0..total)
        .map(|n| message(&format!("t{}", n % 300 % 3), Some(&format!("k{}", n % 300)), n))
        .collect();
    for chunk in messages.chunks(500) {
        publisher.publish(chunk.to_vec()).await.unwrap();
    }
    let mut relays: Vec<Running> = Vec::new();
    let mut names = 0;
    let start = Instant::now();
    while sink.payloads().len() < total {
        assert!(start.elapsed() < Duration::from_secs(100), "{} of {total}", sink.payloads().len());
        while relays.len() < 2 {
            names += 1;
            relays.push(Running::start(
                fixture.open("&page=200&shards=5"),
                &format!("r{names}"),
                &sink,
            ));
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
        if names < 10 {
            relays.remove(0).kill();
        }
    }
    // What relays had delivered and not marked when they were killed is delivered once more.
    until(async || publisher.outstanding().await.unwrap().messages == 0).await;
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
    for relay in relays {
        relay.stop().await;
    }
    assert_eq!(sink.stale_at_the_end(), Vec::<String>::new());
}
