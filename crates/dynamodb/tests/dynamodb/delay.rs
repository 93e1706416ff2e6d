//! Messages that are not due yet.

use crate::{
    fixture::{Fixture, drain, message, recorder},
    hand::Hand,
};
use std::time::Duration;
use tidegate_core::{InspectOutbox, NewMessage, Publish, outbox::StuckQuery};

fn delayed(key: &str, n: usize, delay: Duration) -> NewMessage {
    NewMessage { delay: Some(delay), ..message("t", Some(key), n) }
}

/// It is left where it is. Set aside, it would keep a position that is before those of earlier messages that are read
/// again after a crash.
#[tokio::test]
async fn a_delayed_message_is_not_set_aside_and_holds_nothing_up() {
    let fixture = Fixture::new(1).await;
    let store = fixture.open("");
    let first = delayed("k", 1, Duration::from_secs(3));
    let ids = store.publish(vec![first, message("t", Some("k"), 2)]).await.unwrap();
    let mut hand = Hand::new(fixture.open(""), "hand", Duration::from_millis(300));
    while hand.lanes.len() < 64 {
        hand.share().await;
    }
    let read = hand.read(1).await;
    assert_eq!(read[0].id, ids[1]);
    let claim = hand.claim().await;
    assert!(claim.next_due.is_some_and(|due| due <= Duration::from_secs(3)), "{claim:?}");
    assert!(claim.readings[0].messages.is_empty() && !claim.readings[0].more, "{claim:?}");
    let query = StuckQuery { limit: 10, ..StuckQuery::default() };
    assert_eq!(store.stuck(query).await.unwrap(), []);
    // The relay is gone, and nothing was marked: all of the key comes in the order of its times.
    let sink = recorder();
    drain(fixture.open(""), &sink).await;
    assert_eq!(sink.first_by_key()["k"], [2, 1]);
}

/// More than a page of them neither ends a drain nor keeps it reading.
#[tokio::test]
async fn a_drain_waits_for_more_delayed_messages_than_a_page_holds() {
    let fixture = Fixture::new(2).await;
    let store = fixture.open("");
    let later = Duration::from_secs(4);
    let messages = (0..60).map(|n| delayed(&format!("k{}", n % 6), n, later)).collect();
    store.publish(messages).await.unwrap();
    fixture.proxy.reset_counters();
    let sink = recorder();
    drain(fixture.open("&page=10"), &sink).await;
    assert_eq!((sink.got().len(), sink.payloads().len()), (60, 60));
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
    let counters = fixture.proxy.counters();
    let reads = counters.of("Scan").requests + counters.of("Query").requests;
    assert!(reads < 400, "{reads}: {counters:?}");
}
