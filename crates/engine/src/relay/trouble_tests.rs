//! What the store knows of sinks that take nothing, and which leases are refused.

use super::{testing::*, *};
use crate::{Stop, UnfitLease};
use std::{sync::Arc, time::Duration};
use tidegate_core::{InspectOutbox, outbox::SinkTrouble};
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

/// What the store knows of sinks in trouble.
async fn troubles(store: &tidegate_core::Memory) -> Vec<SinkTrouble> {
    store.outbox().await.unwrap().sinks
}

/// Whether something lasts for as long as it should, as exactly as it is looked at.
fn is_close(lasts: Duration, expected: Duration) -> bool {
    lasts.abs_diff(expected) <= Duration::from_secs(1)
}

/// Not only after its time-out: at any moment from the first ten seconds on, and for as long as it really hangs.
#[tokio::test(start_paused = true)]
async fn a_sink_that_hangs_is_known_soon_and_for_how_long() {
    for checks in [false, true] {
        let start = Instant::now();
        let hangs = Some(("h".to_owned(), start..start + HOUR));
        let (hanging, up) = (Fake { hangs, ..Fake::default() }, Fake::default());
        let (store, hanging, up) = (store(), Arc::new(hanging), Arc::new(up));
        // If it is checked, it need not have a message.
        let topics = if checks { "u" } else { "h" };
        publish(&store, &[(topics, "a", "1"), ("u", "b", "2")]).await;
        let sinks = [("hanging", &hanging), ("up", &up)];
        let plan = plan(&sinks, &[("h", "hanging"), ("u", "up")], TopicPolicy::default());
        let options = RelayOptions { grace: Duration::ZERO, ..options("r", false) };
        let relay = Relay::new(Arc::new(store.clone()), plan, options).unwrap();
        let stop = Stop::new();
        let look = async {
            sleep(Duration::from_secs(9)).await;
            assert_eq!(troubles(&store).await, [], "that is not long");
            for seconds in [12, 22, 45, 59, 61, 68, 100, 130, 500] {
                tokio::time::sleep_until(start + Duration::from_secs(seconds)).await;
                let found = troubles(&store).await;
                let names: Vec<&str> = found.iter().map(|it| it.sink.as_str()).collect();
                assert_eq!(names, ["hanging"], "after {seconds} s");
                assert!(is_close(found[0].lasts, start.elapsed()), "{seconds} s: {found:?}");
            }
            tokio::time::sleep_until(start + HOUR + Duration::from_secs(120)).await;
            assert_eq!(troubles(&store).await, [], "it is back");
            stop.stop();
        };
        let check = async {
            match checks {
                true => match relay.check_sinks().await {},
                false => std::future::pending::<()>().await,
            }
        };
        let run = async { tokio::join!(relay.run(stop.clone()), look) };
        tokio::select! {
            biased;
            ran = run => assert_eq!(ran.0.unwrap().counts.delivered, 2),
            () = check => {}
        }
    }
}

/// In whatever way it says so: of a whole request, or of each message; of many at once, or of one.
#[tokio::test(start_paused = true)]
async fn a_sink_that_puts_messages_off_is_known_after_a_while() {
    for (busy_as_a_whole, one_by_one) in
        [(true, false), (false, false), (true, true), (false, true)]
    {
        let busy = Fake { busy_as_a_whole, one_by_one, ..Fake::default() };
        let (store, busy) = (store(), Arc::new(busy));
        publish(&store, &[("t", "a", "busy 1"), ("t", "a", "busy 2"), ("t", "b", "busy 3")]).await;
        let plan = plan(&[("s", &busy)], &[("*", "s")], TopicPolicy::default());
        let stalled_after = Duration::from_secs(600);
        let options = RelayOptions { grace: Duration::ZERO, stalled_after, ..options("r", false) };
        let relay = Relay::new(Arc::new(store.clone()), plan, options).unwrap();
        let (start, stop) = (Instant::now(), Stop::new());
        let look = async {
            for minutes in [1, 5, 9, 11, 30, 90] {
                tokio::time::sleep_until(start + Duration::from_secs(minutes * 60)).await;
                let found = troubles(&store).await;
                assert_eq!(found.len(), usize::from(minutes > 10), "{minutes} minutes: {found:?}");
                for trouble in found {
                    assert!(is_close(trouble.lasts, start.elapsed()), "{minutes}: {trouble:?}");
                    assert!(["429", "the sink is too busy"].contains(&trouble.reason.as_str()));
                }
            }
            assert_eq!(relay.watch().borrow().counts.moves(), 0);
            stop.stop();
        };
        let (ran, ()) = tokio::join!(relay.run(stop.clone()), look);
        assert_eq!(ran.unwrap().counts.dead, 0);
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
