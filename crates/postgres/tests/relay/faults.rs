//! A server that freezes, closes connections, or crashes, while messages are published.

use crate::{
    LEASE, Running, findings,
    history::{Findings, History},
    server::Server,
    until,
    writers::Writers,
};
use std::{sync::Arc, time::Duration};

/// Longer than the lease of the lanes.
const FROZEN: Duration = Duration::from_secs(5);
const TIMES: usize = 4;

/// A relay and those who publish, on a server of their own.
struct Scene {
    server: Server,
    history: Arc<History>,
    relay: Running,
    writers: Writers,
}

impl Scene {
    async fn start() -> Self {
        let server = Server::start("");
        let history = Arc::new(History::default());
        let relay = Running::start(server.store().await, &history, LEASE);
        let writers = Writers::start(&server.cluster.url(), &history);
        let scene = Self { server, history, relay, writers };
        scene.goes_on().await;
        scene
    }

    /// Messages that are published from now on are delivered.
    async fn goes_on(&self) {
        let next = self.history.attempts();
        until("new messages are delivered", || self.history.seen_from(next) > 50).await;
    }

    /// A message may be seen twice after a fault, and nothing else may be wrong.
    async fn end(self) {
        self.writers.stop().await;
        let findings = findings(&self.history).await;
        let expected = Findings { repeated: findings.repeated.clone(), ..Findings::default() };
        assert_eq!(findings, expected);
        assert!(self.relay.stop().await.delivered >= self.history.commits() as u64);
    }
}

#[tokio::test]
async fn a_server_that_freezes_is_waited_for() {
    let mut scene = Scene::start().await;
    scene.server.cluster.freeze().unwrap();
    tokio::time::sleep(FROZEN).await;
    scene.server.cluster.thaw();
    scene.goes_on().await;
    scene.end().await;
}

#[tokio::test]
async fn connections_that_are_closed_are_replaced() {
    let scene = Scene::start().await;
    for _ in 0..TIMES {
        scene.server.cluster.kill_backends().unwrap();
        scene.goes_on().await;
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_is_waited_for() {
    let mut scene = Scene::start().await;
    for _ in 0..TIMES {
        tokio::task::block_in_place(|| scene.server.restart());
        scene.goes_on().await;
    }
    scene.end().await;
}
