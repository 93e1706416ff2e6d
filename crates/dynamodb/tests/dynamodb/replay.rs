//! Messages that somebody makes outstanding again, as Brighter's replay does: by the same name as before.

use crate::{
    fixture::{Fixture, Running, drain, message, recorder},
    hand::{Hand, item, replay},
    leases::until,
    sink::{Behaviour, Recorder},
};
use std::time::{Duration, Instant};
use tidegate_core::{
    InspectOutbox, Publish,
    outbox::{Aside, OnDead, StuckQuery},
};
use tidegate_drill::dynamodb::Faults;

async fn nothing_is_set_aside(fixture: &Fixture) {
    let query = StuckQuery { limit: 100, ..StuckQuery::default() };
    assert_eq!(fixture.direct().stuck(query).await.unwrap(), []);
    assert_eq!(fixture.direct().outstanding().await.unwrap().messages, 0);
}

/// A relay that has marked a message does not take its replay for an index that lags.
#[tokio::test]
async fn a_replay_is_delivered_soon_by_the_relay_that_marked_the_message() {
    let fixture = Fixture::new(1).await;
    let (store, sink) = (fixture.open(""), recorder());
    let relay = Running::start(fixture.open(""), "a", &sink);
    let ids = store.publish(vec![message("t", Some("k"), 1)]).await.unwrap();
    until(async || store.message(ids[0].clone()).await.unwrap().unwrap().sent).await;
    let start = Instant::now();
    replay(&fixture, &ids[0].to_string()).await;
    until(async || sink.got().len() == 2).await;
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    until(async || store.message(ids[0].clone()).await.unwrap().unwrap().sent).await;
    relay.stop().await;
    assert_eq!(sink.got().len(), 2);
}

#[tokio::test]
async fn a_drain_does_not_end_before_a_replay_is_delivered() {
    let fixture = Fixture::new(2).await;
    let (store, sink) = (fixture.open(""), recorder());
    let ids = store.publish(vec![message("t", Some("k"), 1)]).await.unwrap();
    drain(store.clone(), &sink).await;
    replay(&fixture, &ids[0].to_string()).await;
    drain(store.clone(), &sink).await;
    assert_eq!(sink.got().len(), 2);
    nothing_is_set_aside(&fixture).await;
}

/// An index that shows for seconds what is done is asked about in few requests.
#[tokio::test]
async fn an_index_that_lags_for_long_is_doubted_now_and_then() {
    let fixture = Fixture::new(3).await;
    fixture.faults(Faults { index_lag: Duration::from_secs(9), ..Faults::default() });
    let (store, sink) = (fixture.open("&min_age=10s"), recorder());
    let messages = (0..50).map(|n| message("t", Some(&format!("k{n}")), n)).collect();
    store.publish(messages).await.unwrap();
    fixture.proxy.catch_up().await.unwrap();
    let relay = Running::start(fixture.open(""), "a", &sink);
    until(async || sink.got().len() == 50).await;
    // Lanes that were gained just now are always looked up; those that are marked, now and then.
    tokio::time::sleep(Duration::from_secs(7)).await;
    relay.stop().await;
    assert_eq!(sink.got().len(), 50, "none came twice");
}

#[tokio::test]
async fn a_replay_of_a_dead_message_is_delivered_once_and_ends_its_record() {
    let fixture = Fixture::new(4).await;
    let store = fixture.open("");
    let ids = store.publish(vec![message("t", Some("k"), 1)]).await.unwrap();
    let refuses = ["1".to_owned()].into();
    let sink = Recorder::new(Behaviour { refuses, ..Behaviour::default() });
    drain(fixture.open(""), &sink).await;
    assert_eq!(store.dead_groups().await.unwrap().len(), 1);
    sink.behave(Behaviour::default());
    replay(&fixture, &ids[0].to_string()).await;
    drain(fixture.open(""), &sink).await;
    assert_eq!(sink.got().len(), 1);
    assert!(!item(&fixture, &ids[0].to_string()).await.contains_key("TidegateAside"));
    nothing_is_set_aside(&fixture).await;
}

/// Whatever a message waits for, and whether or not the relay knows of it: the replay is delivered once, and its
/// key goes on.
#[tokio::test]
async fn a_replay_of_what_waits_is_delivered_once_and_frees_its_key() {
    let waits = [
        Aside::Retry {
            attempts: 1,
            reason: "not now".to_owned(),
            delay: Duration::from_secs(3_600),
        },
        Aside::Later { delay: Duration::from_secs(3_600) },
        Aside::Dead { attempts: 1, reason: "never".to_owned(), then: OnDead::Block },
        Aside::Dead { attempts: 1, reason: "never".to_owned(), then: OnDead::Park },
    ];
    for (seed, aside) in waits.into_iter().enumerate() {
        let fixture = Fixture::new(seed as u64).await;
        let store = fixture.open("");
        let first = store.publish(vec![message("t", Some("k"), 1)]).await.unwrap();
        let mut hand = Hand::new(fixture.open(""), "hand", Duration::from_millis(200));
        while hand.lanes.len() < 64 {
            hand.share().await;
        }
        let read = hand.read(1).await;
        assert_eq!(hand.set_aside(&read, aside.clone()).await.late, []);
        store.publish(vec![message("t", Some("k"), 2)]).await.unwrap();
        replay(&fixture, &first[0].to_string()).await;
        let sink = recorder();
        drain(fixture.open(""), &sink).await;
        let got: Vec<String> = sink.got().into_iter().map(|got| got.payload).collect();
        assert_eq!(got, ["1", "2"], "{aside:?}");
        nothing_is_set_aside(&fixture).await;
    }
}

/// The relay that has set it aside itself frees the key, too.
#[tokio::test]
async fn a_relay_learns_that_what_it_set_aside_was_replayed() {
    let fixture = Fixture::new(5).await;
    let mut hand = Hand::start(fixture.open("")).await;
    let ids = fixture.open("").publish(vec![message("t", Some("k"), 1)]).await.unwrap();
    let read = hand.read(1).await;
    let dead = Aside::Dead { attempts: 1, reason: "never".to_owned(), then: OnDead::Block };
    hand.set_aside(&read, dead).await;
    replay(&fixture, &ids[0].to_string()).await;
    let mut again = Vec::new();
    let start = Instant::now();
    while again.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain");
        let mut claim = hand.claim().await;
        again = claim.readings.remove(0).messages;
        if !claim.gone.is_empty() {
            hand.settle_gone(claim.gone).await;
        }
    }
    hand.settle(&[&again[0]], &[]).await;
    nothing_is_set_aside(&fixture).await;
    assert!(item(&fixture, &ids[0].to_string()).await.contains_key("DeliveryTime"));
}
