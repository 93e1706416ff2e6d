//! The server goes back in time under a living relay (law 16).

use crate::{
    Running, findings,
    history::History,
    server::Server,
    sink::Recorder,
    writers::{Writers, publish},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{sync::Arc, time::Duration};
use tidegate_drill::postgres::Crash;
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
