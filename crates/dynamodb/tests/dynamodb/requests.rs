//! How many requests it takes.

use crate::fixture::{Fixture, drain, drain_with_lease, message, recorder};
use std::time::Duration;
use tidegate_core::{
    NewMessage, Outbox, Publish, WorkerId,
    outbox::{ClaimRequest, LaneLease, Place, Reader, Share},
};

#[tokio::test]
async fn an_empty_look_takes_as_many_requests_as_segments_and_one_when_idle() {
    let fixture = Fixture::new(1).await;
    let store = fixture.open("&shards=20");
    let messages: Vec<NewMessage> =
        (0..500).map(|n| message(&format!("t{}", n % 5), Some(&n.to_string()), n)).collect();
    store.publish(messages).await.unwrap();
    drain(fixture.open("&shards=20"), &recorder()).await;
    let (relay, lease) = (WorkerId("a".to_owned()), Duration::from_secs(30));
    let share =
        Share { relay, epoch: Default::default(), held: Vec::new(), routes: Vec::new(), lease };
    let shared = store.share_lanes(share).await.unwrap();
    let lanes: Vec<LaneLease> = shared.gained.iter().map(|gained| gained.lease).collect();
    let places = lanes.iter().map(|lease| Place { lane: lease.lane, after: 0 }).collect();
    let readers = vec![Reader { places, most: 512, ..Reader::default() }];
    let request = ClaimRequest {
        epoch: shared.epoch,
        readers,
        lanes: lanes.iter().map(|lease| lease.lane).collect(),
        most_due: 100,
        most_bytes: 1 << 20,
        ..ClaimRequest::default()
    };
    store.claim_messages(request.clone()).await.unwrap();
    let mut counts = Vec::new();
    for _ in 0..6 {
        fixture.proxy.reset_counters();
        store.claim_messages(request.clone()).await.unwrap();
        counts.push(fixture.proxy.counters().total().requests);
    }
    assert!(counts[0] <= 3, "{counts:?}");
    assert_eq!(counts[5], 1, "{counts:?}");
}

#[tokio::test]
async fn reading_and_publishing_take_few_requests() {
    let fixture = Fixture::new(2).await;
    let store = fixture.open("");
    let messages: Vec<NewMessage> =
        (0..2_000).map(|n| message("t", Some(&format!("k{n}")), n)).collect();
    store.publish(messages).await.unwrap();
    let published = fixture.proxy.counters();
    assert!(published.total().requests <= 100, "{published:?}");
    fixture.proxy.reset_counters();
    let sink = recorder();
    drain_with_lease(fixture.open(""), &sink, Duration::from_secs(20)).await;
    let counters = fixture.proxy.counters();
    assert_eq!(sink.got().len(), 2_000);
    assert_eq!(counters.of("UpdateItem").requests.saturating_sub(2_000) / 20, 0, "{counters:?}");
    let reads: u64 =
        ["Scan", "Query", "BatchGetItem"].iter().map(|it| counters.of(it).requests).sum();
    assert!(reads <= 100, "{reads} reads: {counters:?}");
}

/// As the page about DynamoDB says it.
#[tokio::test]
async fn a_sign_of_life_costs_four_units() {
    let fixture = Fixture::new(3).await;
    let store = fixture.open("");
    // As long as the names of real ones.
    let relay = WorkerId(format!("12345-{:016x}", rand::random::<u64>()));
    let lease = Duration::from_secs(30);
    let mut share =
        Share { relay, epoch: Default::default(), held: Vec::new(), routes: Vec::new(), lease };
    while share.held.is_empty() {
        let shared = store.share_lanes(share.clone()).await.unwrap();
        share.epoch = shared.epoch;
        share.held.extend(shared.gained.iter().map(|gained| gained.lease));
    }
    fixture.proxy.reset_counters();
    store.share_lanes(share).await.unwrap();
    let counters = fixture.proxy.counters();
    assert_eq!(counters.total().requests, 1, "{counters:?}");
    assert_eq!(counters.of("UpdateItem").write_units, 4.0, "{counters:?}");
}
