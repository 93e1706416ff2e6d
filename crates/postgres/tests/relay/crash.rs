//! What a relay remembers, and the server does not.

use crate::{
    Running, findings,
    history::History,
    server::Server,
    until,
    writers::{publish, run},
};
use std::{sync::Arc, time::Duration};
use tokio_postgres::Client;

/// A crash takes back what no commit has made durable: also ids that a relay has seen drawn. They are
/// drawn again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_that_a_crash_takes_back_are_read_when_they_are_drawn_again() {
    for synchronous_commit in ["on", "off"] {
        // By itself, the server writes down as late as it can; nor does the relay renew its lanes.
        let mut server = Server::start(&format!(
            "wal_writer_delay = 10s\nautovacuum = off\nsynchronous_commit = {synchronous_commit}"
        ));
        let (store, history) = (server.store().await, Arc::new(History::default()));
        let relay = Running::start(store.clone(), &history, Duration::from_secs(600));
        for ends in ["rollback", "select 'it stays open'", "rollback"] {
            let client = server.client().await;
            commit_one(&client, &history).await;
            assert_eq!(findings(&history).await.lost, [].into(), "{synchronous_commit}, {ends}");
            run(&client, "checkpoint").await.unwrap();
            run(
                &client,
                "begin; select tidegate.publish('t', 'k', '0') from generate_series(1, 500)",
            )
            .await
            .unwrap();
            run(&client, ends).await.unwrap();
            let statements = store.statements();
            until("the relay has looked", || store.statements() > statements + 5).await;
            tokio::task::block_in_place(|| server.restart());
        }
        let client = server.client().await;
        for _ in 0..10 {
            commit_one(&client, &history).await;
        }
        assert_eq!(findings(&history).await.lost, [].into(), "{synchronous_commit}");
        relay.stop().await;
    }
}

async fn commit_one(client: &Client, history: &History) {
    let number = publish(client, history, "k").await.unwrap();
    history.committed(&[number]);
}
