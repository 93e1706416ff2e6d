//! Many who write at once, for as long as they like.

use crate::{
    LEASE, Running, findings,
    history::{Findings, History},
    support::{Database, POSTGRES},
    writers::{publish, run},
};
use futures_util::future::join_all;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{sync::Arc, time::Duration};
use tokio_postgres::Client;

const WRITERS: u64 = 32;
const KEYS: u32 = 20;
/// The longest transaction; most are much shorter.
const LONGEST: Duration = Duration::from_secs(5);
/// How long a writer's transactions are together, the last left out.
const ALTOGETHER: Duration = Duration::from_secs(6);

/// One transaction of a writer.
struct Transaction {
    keys: Vec<String>,
    /// After each message.
    pause: Duration,
    commits: bool,
}

/// What a writer is going to do.
fn transactions(writer: u64) -> Vec<Transaction> {
    let mut rng = ChaCha8Rng::seed_from_u64(writer);
    let (mut planned, mut altogether) = (Vec::new(), Duration::ZERO);
    while altogether < ALTOGETHER {
        let length = LONGEST.mul_f64(rng.random_range(0.0..1.0_f64).powi(3));
        let messages = rng.random_range(1..=4);
        let key = |_| format!("key {}", rng.random_range(0..KEYS));
        let keys = (0..messages).map(key).collect();
        let commits = !rng.random_bool(0.2);
        planned.push(Transaction { keys, pause: length / messages, commits });
        altogether += length;
    }
    planned
}

async fn carry_out(client: &Client, history: &History, transaction: Transaction) {
    run(client, "begin").await.unwrap();
    let mut numbers = Vec::new();
    for key in &transaction.keys {
        numbers.push(publish(client, history, key).await.unwrap());
        tokio::time::sleep(transaction.pause).await;
    }
    if transaction.commits {
        run(client, "commit").await.unwrap();
        history.committed(&numbers);
    } else {
        run(client, "rollback").await.unwrap();
        history.rolled_back(&numbers);
    }
}

#[tokio::test]
async fn what_is_committed_is_delivered_in_the_order_of_each_key() {
    let database = Database::create(POSTGRES).await;
    let history = Arc::new(History::default());
    let relay = Running::start(Arc::new(database.store().await), &history, LEASE);
    let writer = async |writer| {
        let client = database.client().await;
        for transaction in transactions(writer) {
            carry_out(&client, &history, transaction).await;
        }
    };
    join_all((0..WRITERS).map(writer)).await;
    assert_eq!(findings(&history).await, Findings::default());
    assert_eq!(relay.stop().await.delivered, history.commits() as u64);
    assert!(history.commits() > 200 && history.rollbacks() > 20, "there was too little to do");
}

/// A snapshot keeps old rows alive, but no message can come from it.
#[tokio::test]
async fn a_snapshot_that_stays_open_holds_nothing_back() {
    let database = Database::create(POSTGRES).await;
    let history = Arc::new(History::default());
    let relay = Running::start(Arc::new(database.store().await), &history, LEASE);
    let reader = database.client().await;
    run(&reader, "begin isolation level repeatable read").await.unwrap();
    let visible = async || -> i64 {
        let row = reader.query_one("select count(*) from tidegate.message", &[]).await.unwrap();
        row.get(0)
    };
    assert_eq!(visible().await, 0);
    let writer = async |writer| {
        let client = database.client().await;
        for n in 0..200_u32 {
            let keys = vec![format!("key {}", (writer + n) % KEYS)];
            let transaction = Transaction { keys, pause: Duration::ZERO, commits: true };
            carry_out(&client, &history, transaction).await;
        }
    };
    join_all((0..8).map(writer)).await;
    assert_eq!(findings(&history).await, Findings::default());
    assert_eq!(visible().await, 0, "it is still open");
    assert_eq!(relay.stop().await.delivered, 1_600);
}
