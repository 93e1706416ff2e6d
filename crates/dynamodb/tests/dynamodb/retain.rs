//! Messages that were delivered are removed, and no others.

use crate::{
    fixture::{Fixture, drain, message, recorder},
    hand::{replay, update},
};
use std::time::Duration;
use tidegate_core::{InspectOutbox, MessageId, NewMessage, Publish, Retain};

const HOUR: Duration = Duration::from_secs(3_600);

async fn delivered(fixture: &Fixture, topic: &str, count: usize, bytes: usize) -> Vec<MessageId> {
    let large = |n| NewMessage {
        payload: format!("\"{}\"", "x".repeat(bytes)).into_bytes(),
        ..message(topic, None, n)
    };
    let ids = fixture.direct().publish((0..count).map(large).collect()).await.unwrap();
    drain(fixture.direct(), &recorder()).await;
    ids
}

/// As if they had been delivered long ago.
async fn make_old(fixture: &Fixture, ids: &[MessageId]) {
    for id in ids {
        let ago = "SET DeliveryTime = DeliveryTime - :day, CreatedTime = CreatedTime - :day";
        let day = aws_sdk_dynamodb::types::AttributeValue::N("864000000000".to_owned());
        let request = fixture.client().update_item().table_name(fixture.table());
        let id = aws_sdk_dynamodb::types::AttributeValue::S(id.to_string());
        let request = request.key("MessageId", id).update_expression(ago);
        request.expression_attribute_values(":day", day).send().await.unwrap();
    }
}

/// Requests grow with what is removed, and not with what is kept.
#[tokio::test]
async fn what_is_kept_is_passed_over() {
    let fixture = Fixture::new(1).await;
    let store = fixture.open("");
    let mut costs = Vec::new();
    for round in 0..3 {
        delivered(&fixture, "t", 60, 50_000).await;
        let old = delivered(&fixture, "t", 20, 10).await;
        make_old(&fixture, &old).await;
        fixture.proxy.reset_counters();
        let sealed = store.seal(HOUR).await.unwrap().unwrap();
        assert_eq!(sealed.messages, 20, "{round}");
        assert_eq!(store.discard(sealed).await.unwrap(), 20);
        assert_eq!(store.seal(HOUR).await.unwrap(), None);
        let counters = fixture.proxy.counters();
        costs.push(counters.of("Scan").requests + counters.of("Query").requests);
    }
    assert!(costs[1] <= 8 && costs[2] <= costs[1], "{costs:?}");
}

#[tokio::test]
async fn every_topic_is_found_in_sets() {
    let fixture = Fixture::new(2).await;
    let store = fixture.open("");
    let mut old = Vec::new();
    for topic in ["a", "b", "c"] {
        old.extend(delivered(&fixture, topic, 400, 10).await);
    }
    // One without a shard is in no index of a shard.
    update(&fixture, &old[7].to_string(), "REMOVE TopicShard").await;
    let mut removed = 0;
    while let Some(sealed) = store.seal(Duration::ZERO).await.unwrap() {
        let read = store.sealed(sealed, None, 10_000).await.unwrap();
        assert_eq!(read.len() as u64, sealed.messages);
        assert!(read.is_sorted_by_key(|message| message.id.clone()));
        removed += store.discard(sealed).await.unwrap();
    }
    assert_eq!(removed, 1_200);
    assert!(store.message(old[7].clone()).await.unwrap().is_none());
}

/// Somebody makes a message outstanding again just before it is removed.
#[tokio::test]
async fn a_message_that_is_replayed_meanwhile_is_not_removed() {
    let fixture = Fixture::new(3).await;
    let store = fixture.open("");
    let ids = delivered(&fixture, "t", 30, 10).await;
    let sealed = store.seal(Duration::ZERO).await.unwrap().unwrap();
    replay(&fixture, &ids[7].to_string()).await;
    assert_eq!(store.discard(sealed).await.unwrap(), 29);
    let sink = recorder();
    drain(fixture.open(""), &sink).await;
    assert_eq!(
        sink.got().iter().map(|got| got.id.clone()).collect::<Vec<_>>(),
        [ids[7].to_string()]
    );
}

/// It was delivered once more since: it is not old any more.
#[tokio::test]
async fn a_message_that_was_delivered_again_meanwhile_is_not_removed() {
    let fixture = Fixture::new(4).await;
    let store = fixture.open("");
    let ids = delivered(&fixture, "t", 2, 10).await;
    make_old(&fixture, &ids).await;
    let sealed = store.seal(HOUR).await.unwrap().unwrap();
    replay(&fixture, &ids[0].to_string()).await;
    drain(fixture.open(""), &recorder()).await;
    assert_eq!(store.discard(sealed).await.unwrap(), 1);
    assert!(store.message(ids[0].clone()).await.unwrap().unwrap().sent);
}
