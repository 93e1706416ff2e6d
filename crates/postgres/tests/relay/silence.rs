//! Connections that die without a word, while the server is well: nobody closes them, and nothing comes out of them.

use crate::{
    DEADLINE, Running, history::History, proxy::Proxy, server::Server, until, writers::publish,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_core::{
    Keep, Kind, NewMessage, Publish, RetryPolicy, Snapshot, Source, Submit, WorkerId,
    claim::{ClaimRequest, Length, Lengths},
    submit::NewBatch,
};
use tidegate_postgres::Postgres;
use tokio::time::timeout;

const LEASE: Duration = Duration::from_secs(3);

/// Beyond the lease: for new connections, on a busy machine.
const GRACE: Duration = Duration::from_secs(3);

/// Publishes through a connection that nothing happens to, and waits until the relay has delivered it.
async fn delivers(server: &Server, history: &History) {
    let (client, next) = (server.client().await, history.attempts());
    let number = publish(&client, history, "k").await.unwrap();
    history.committed(&[number]);
    until("the message is delivered", || history.seen_from(next) > 0).await;
}

#[tokio::test]
async fn a_relay_goes_on_when_its_backends_stop() {
    let mut server = Server::start("");
    let history = Arc::new(History::default());
    let relay = Running::start(server.store().await, &history, LEASE);
    for _ in 0..2 {
        delivers(&server, &history).await;
        assert!(server.stop_backends("tidegate").await > 0);
        let begun = Instant::now();
        delivers(&server, &history).await;
        assert!(begun.elapsed() < LEASE + GRACE, "it took {:?}", begun.elapsed());
        server.resume_backends();
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_relay_goes_on_when_packets_are_swallowed() {
    let server = Server::start("");
    let proxy = Proxy::start(server.cluster.port()).await;
    drop(server.store().await);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port());
    let store = Arc::new(Postgres::connect(&url).await.unwrap());
    let history = Arc::new(History::default());
    let relay = Running::start(store, &history, LEASE);
    for _ in 0..3 {
        delivers(&server, &history).await;
        proxy.swallow();
        let begun = Instant::now();
        delivers(&server, &history).await;
        assert!(begun.elapsed() < LEASE + GRACE, "it took {:?}", begun.elapsed());
    }
    relay.stop().await;
}

/// A store behind a proxy, with all the connections that it ever has, and a batch.
async fn busy(server: &Server) -> (Proxy, Arc<Postgres>) {
    let proxy = Proxy::start(server.cluster.port()).await;
    let batch = NewBatch {
        workload: "noop".to_owned(),
        snapshot: Snapshot::freeze(&serde_json::json!({})),
        seed: 1,
        runs: 1_000,
        keep: Keep::None,
        retry: RetryPolicy::default(),
        timeout: None,
    };
    server.store().await.submit(batch).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port());
    let store = Arc::new(Postgres::connect(&url).await.unwrap());
    // A lock holds all of them up, so that each needs a connection of its own.
    let client = server.client().await;
    client.batch_execute(LOCK).await.unwrap();
    let calls: Vec<_> = (0..4).map(|_| tokio::spawn(claim(store.clone(), SLOW))).collect();
    until("there are four connections", || proxy.made() >= 4).await;
    client.batch_execute("commit").await.unwrap();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    (proxy, store)
}

const LOCK: &str = "begin; lock table tidegate.batch in access exclusive mode";

/// Calls under such a lease have much time.
const SLOW: Duration = Duration::from_secs(90);

async fn claim(store: Arc<Postgres>, lease: Duration) -> Result<usize, Kind> {
    let unknown = Length { most: 1, least: 1 };
    let request = ClaimRequest {
        worker: WorkerId("a worker".to_owned()),
        slots: 1,
        lengths: Lengths { unknown, known: Vec::new() },
        workloads: vec!["noop".to_owned()],
        only: None,
        lease,
        known: Vec::new(),
    };
    store.claim(request).await.map(|claim| claim.leases.len()).map_err(|error| error.kind())
}

#[tokio::test]
async fn one_deadline_is_enough_for_all_idle_connections() {
    let server = Server::start("");
    let (proxy, store) = busy(&server).await;
    proxy.swallow();
    assert_eq!(claim(store.clone(), LEASE).await, Err(Kind::Deadline));
    let made = proxy.made();
    assert_eq!(claim(store, LEASE).await, Ok(1), "the next call gets a new connection");
    assert!(proxy.made() > made);
}

#[tokio::test]
async fn a_call_that_is_given_up_stops_on_the_server_and_its_connection_is_closed() {
    let server = Server::start("");
    let store = server.store().await;
    let client = server.client().await;
    client.batch_execute(LOCK).await.unwrap();
    let waits = "select count(*) from pg_stat_activity
        where application_name = 'tidegate' and wait_event_type = 'Lock'";
    let waiting = async |expected: i64| {
        let begun = Instant::now();
        while client.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) != expected {
            assert!(begun.elapsed() < DEADLINE, "waited in vain for {expected}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let call = tokio::spawn(claim(store.clone(), SLOW));
    waiting(1).await;
    call.abort();
    waiting(0).await;
    client.batch_execute("commit").await.unwrap();
    assert_eq!(claim(store, SLOW).await, Ok(0));
}

/// Whoever publishes seldom finds a connection that died long ago before it sends anything on it.
#[tokio::test]
async fn publishing_on_a_connection_that_died_while_it_was_idle_has_no_unknown_outcome() {
    let server = Server::start("");
    let (proxy, store) = busy(&server).await;
    proxy.swallow();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (topic, payload) = ("t".to_owned(), b"{}".to_vec());
    let message = NewMessage { topic, payload, ..NewMessage::default() };
    let published = timeout(DEADLINE / 2, store.publish(vec![message])).await.unwrap();
    assert_eq!(published.unwrap().len(), 1);
    let client = server.client().await;
    let count = client.query_one("select count(*) from tidegate.messages", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 1);
}
