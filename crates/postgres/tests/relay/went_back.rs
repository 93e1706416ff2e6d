//! The server goes back in time under a living relay (law 16).

use crate::{
    Running, findings,
    history::History,
    patient,
    server::Server,
    sink::Recorder,
    until,
    writers::{Writers, message, publish},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tidegate_core::{InspectOutbox, Publish};
use tidegate_drill::postgres::Crash;
use tidegate_postgres::Postgres;
use tokio::task::block_in_place;
use tokio_postgres::Client;

/// So long that no renewal helps: what is noticed is noticed by claims and settlements.
const LONG: Duration = Duration::from_secs(600);

async fn publish_some(client: &Client, history: &History, many: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    for n in 0..many {
        numbers.push(publish(client, history, &format!("key {}", n % 7)).await.unwrap());
    }
    numbers
}

/// A standby that lacks the last messages takes over: ids that the relay has read are given to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_standby_that_lags_loses_nothing_that_it_has() {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let mut server = Server::start("wal_level = replica");
    let (store, history) = (server.store().await, Arc::new(History::default()));
    let relay = Running::start(store.clone(), &history, LONG);
    for lacks in [500, 1, 0, rng.random_range(2..200)] {
        let client = server.client().await;
        let numbers = publish_some(&client, &history, 50).await;
        history.committed(&numbers);
        assert_eq!(findings(&history).await.lost, [].into());
        block_in_place(|| {
            server.cluster.add_standby().unwrap();
            server.cluster.hold_standby().unwrap();
        });
        // The relay delivers these, and the standby will never know.
        let first = history.attempts();
        publish_some(&client, &history, lacks).await;
        crate::until("they are delivered", || history.seen_from(first) >= lacks).await;
        block_in_place(|| server.cluster.fail_over(Crash::Kill).unwrap());
        let client = server.client().await;
        let numbers = publish_some(&client, &history, 600).await;
        history.committed(&numbers);
        let found = findings(&history).await;
        assert_eq!((found.lost, found.overtaken), Default::default(), "{lacks} lacking");
    }
    relay.stop().await;
}

/// So many of so many keys are set aside.
const KEYS: usize = 2_000;
const SET_ASIDE: usize = 12_000;

/// Publishes messages of many keys in one transaction.
async fn publish_many(store: &Postgres, history: &History, many: usize) -> Vec<u64> {
    let first = history.attempts();
    let messages = (0..many).map(|n| message(history, &format!("key {}", n % KEYS)));
    store.publish(messages.collect()).await.unwrap();
    (first..history.attempts()).collect()
}

/// A standby takes over that has much set aside: some of it was delivered since by the old primary, which had set more
/// aside. All that it has arrives, in order, and nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_with_much_set_aside_loses_nothing() {
    let mut server = Server::start("wal_level = replica");
    let (store, history) = (server.store().await, Arc::new(History::default()));
    let sink = Recorder::new(&history, BTreeSet::new());
    let fails = |ends: &[&'static str]| *sink.fails_at_present.lock().unwrap() = ends.to_vec();
    fails(&["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    let relay = Running::start_plan(store.clone(), patient(sink.clone()), LONG);
    let committed = publish_many(&store, &history, SET_ASIDE).await;
    history.committed(&committed);
    let aside = "select count(*) from tidegate.aside";
    let is_aside = |server: &Server, many: usize| {
        let count = block_in_place(|| server.cluster.query(aside).unwrap());
        count.parse::<usize>().unwrap() >= many
    };
    until("all are set aside", || is_aside(&server, SET_ASIDE)).await;
    block_in_place(|| {
        server.cluster.add_standby().unwrap();
        server.cluster.hold_standby().unwrap();
    });
    // The standby knows neither what follows, nor that half of what it has was delivered.
    let lacking = publish_many(&store, &history, 1_000).await;
    until("more is set aside", || is_aside(&server, SET_ASIDE + lacking.len())).await;
    fails(&["5", "6", "7", "8", "9"]);
    until("some are delivered", || history.seen_from(0) > SET_ASIDE / 4).await;
    block_in_place(|| server.cluster.fail_over(Crash::Kill).unwrap());
    assert!(is_aside(&server, SET_ASIDE - 1_000), "the standby had much set aside");
    let after = publish_many(&store, &history, 3_000).await;
    history.committed(&after);
    fails(&[]);
    let found = findings(&history).await;
    assert_eq!((found.lost, found.unexpected, found.overtaken), Default::default());
    until("nothing is left", || block_in_place(|| server.cluster.query(aside).unwrap()) == "0")
        .await;
    assert_eq!(store.outstanding().await.unwrap().messages, 0);
    relay.stop().await;
}

/// A crash at any point, while everything is written as late as possible: what was settled stays settled, and what was
/// set aside is not forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_at_random_points_without_synchronous_commits_lose_nothing_that_is_left() {
    let mut rng = ChaCha8Rng::seed_from_u64(4711);
    let mut server = Server::start("synchronous_commit = off\nwal_writer_delay = 10s");
    let (store, history) = (server.store().await, Arc::new(History::default()));
    let relay = Running::start_with(store.clone(), Recorder::flaky(&history), LONG);
    let writers = Writers::start(&server.cluster.url(), &history);
    for _ in 0..6 {
        let seen = history.seen_from(0) + rng.random_range(1..400);
        crate::until("more was delivered", || history.seen_from(0) >= seen).await;
        block_in_place(|| server.restart());
    }
    writers.stop().await;
    let client = server.client().await;
    let kept = "select convert_from(payload, 'UTF8')::bigint from tidegate.message";
    let kept = client.query(kept, &[]).await.unwrap();
    history.kept(&kept.iter().map(|row| row.get::<_, i64>(0) as u64).collect());
    let found = findings(&history).await;
    assert_eq!((found.lost, found.unexpected, found.overtaken), Default::default());
    relay.stop().await;
}
