//! What the store knows of sinks that take nothing, and which leases are refused.

use super::{testing::*, *};
use crate::{Stop, UnfitLease};
use std::{sync::Arc, time::Duration};
use tidegate_core::InspectOutbox;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_down_is_known_to_the_store_until_it_is_back() {
    let away = Instant::now() + Duration::from_secs(60);
    let (down, up) = (Fake { absent_until: Some(away), ..Fake::default() }, Fake::default());
    let (store, down, up) = (store(), Arc::new(down), Arc::new(up));
    publish(&store, &[("d", "a", "1"), ("u", "b", "2")]).await;
    let sinks = [("down", &down), ("up", &up)];
    let plan = plan(&sinks, &[("d", "down"), ("u", "up")], TopicPolicy::default());
    let relay = Relay::new(Arc::new(store.clone()), plan, options("r", false)).unwrap();
    let stop = Stop::new();
    let look = async {
        sleep(Duration::from_secs(1)).await;
        let first = store.outbox().await.unwrap().sinks;
        assert_eq!(first.iter().map(|it| it.sink.as_str()).collect::<Vec<_>>(), ["down"]);
        // Longer than a lease: it is said again and again.
        sleep(Duration::from_secs(40)).await;
        let later = store.outbox().await.unwrap().sinks;
        assert_eq!(later.len(), 1);
        assert!(later[0].lasts >= first[0].lasts + Duration::from_secs(40), "{later:?}");
        while down.count() == 0 {
            sleep(Duration::from_secs(1)).await;
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(store.outbox().await.unwrap().sinks, []);
        stop.stop();
    };
    let (ran, ()) = tokio::join!(relay.run(stop.clone()), look);
    assert_eq!(ran.unwrap().counts.delivered, 2);
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_ends_takes_its_notes_along_and_one_that_is_killed_is_forgotten() {
    for killed in [false, true] {
        let down = Fake { absent_until: Some(Instant::now() + HOUR), ..Fake::default() };
        let (store, down) = (store(), Arc::new(down));
        publish(&store, &[("t", "a", "1")]).await;
        let plan = plan(&[("s", &down)], &[("*", "s")], TopicPolicy::default());
        let options = RelayOptions { grace: Duration::ZERO, ..options("r", false) };
        let lease = options.lease;
        let relay = Relay::new(Arc::new(store.clone()), plan, options).unwrap();
        let stop = Stop::new();
        let running = {
            let stop = stop.clone();
            tokio::spawn(async move { relay.run(stop).await })
        };
        sleep(Duration::from_secs(1)).await;
        assert_eq!(store.outbox().await.unwrap().sinks.len(), 1);
        if killed {
            running.abort();
            sleep(lease + Duration::from_secs(1)).await;
        } else {
            stop.stop();
            running.await.unwrap().unwrap();
        }
        assert_eq!(store.outbox().await.unwrap().sinks, []);
    }
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_too_short_is_refused() {
    let (store, sink) = (store(), Arc::new(Fake::default()));
    publish(&store, &[("t", "a", "1")]).await;
    let lease = Duration::from_millis(1);
    let options = RelayOptions { lease, ..options("r", true) };
    let plan = plan(&[("s", &sink)], &[("*", "s")], TopicPolicy::default());
    let relay = Relay::new(Arc::new(store.clone()), plan, options).unwrap();
    let error = relay.run(Stop::new()).await.unwrap_err();
    assert!(
        matches!(error, work::RelayError::Lease(UnfitLease::TooShort(short)) if short == lease)
    );
    assert_eq!((sink.count(), outstanding(&store).await), (0, 1));
}
