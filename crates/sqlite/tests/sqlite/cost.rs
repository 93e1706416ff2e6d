//! What operations cost: statements, transactions, and no scan of a table that grows.

use crate::{claim, dense, settlement, store, submit};
use rusqlite::{Connection, StatementStatus};
use std::{fs, path::Path, time::Duration};
use tidegate_core::{
    Source,
    settle::{Failed, Settled},
};
use tidegate_sqlite::Sqlite;

/// How many statements and transactions `work` takes.
async fn cost(store: &Sqlite, work: impl Future<Output = ()>) -> (u64, u64) {
    let before = (store.statements(), store.transactions());
    work.await;
    (store.statements() - before.0, store.transactions() - before.1)
}

#[tokio::test]
async fn a_settlement_costs_the_same_for_one_run_and_for_many() {
    let (_directory, _path, store) = store().await;
    submit(&store, 100_000).await;
    for (sequence, length) in [(1, 1), (2, 10_000)] {
        let lease = claim(&store, 1, length).await.leases.remove(0);
        assert_eq!(lease.items.len(), length);
        let settlement = settlement(&lease, dense(&lease), sequence);
        let settle = async {
            assert_eq!(store.settle(settlement).await.unwrap(), Settled::Applied);
        };
        assert_eq!(cost(&store, settle).await, (5, 1), "clock, sequence, lease, page, aggregates");
    }
}

#[tokio::test]
async fn failures_cost_one_statement_together() {
    let (_directory, _path, store) = store().await;
    submit(&store, 1_000).await;
    let lease = claim(&store, 1, 100).await.leases.remove(0);
    let mut settlement = settlement(&lease, None, 1);
    let failed = |index| Failed {
        index,
        attempts: 1,
        reason: "no \"luck\"".to_owned(),
        delay: Some(Duration::ZERO),
    };
    settlement.parts[0].failed = (0..100).map(failed).collect();
    let settle = async { drop(store.settle(settlement).await.unwrap()) };
    assert_eq!(cost(&store, settle).await, (5, 1));
    let again = async { assert_eq!(claim(&store, 1, 100).await.leases[0].items.len(), 100) };
    let (statements, _) = cost(&store, again).await;
    assert!(statements <= 7, "{statements}");
}

#[tokio::test]
async fn messages_cost_the_same_for_one_and_for_many() {
    let (_directory, _path, store) = store().await;
    let relay = crate::outbox::Relay::start(&store).await;
    let mut costs = Vec::new();
    for many in [1, 500] {
        let mut messages = Vec::new();
        let publish = cost(&store, async { relay.publish(many).await }).await;
        let claim = cost(&store, async { messages = relay.read().await }).await;
        assert_eq!(messages.len(), many);
        let settle = cost(&store, async { relay.set_all_aside(&messages).await }).await;
        let due = cost(&store, async { messages = relay.due().await }).await;
        assert_eq!(messages.len(), many);
        let done = cost(&store, async { relay.done(&messages).await }).await;
        costs.push([publish, claim, settle, due, done]);
    }
    assert_eq!(costs[0], costs[1]);
    assert!(costs[0].iter().all(|(statements, _)| *statements <= 10), "{costs:?}");
    let transactions: Vec<u64> = costs[0].iter().map(|(_, transactions)| *transactions).collect();
    assert_eq!(transactions, [1, 0, 1, 0, 1], "reading writes nothing");
}

/// Twice as many messages of one key cost the status about twice as much.
#[tokio::test]
async fn the_status_reads_what_was_set_aside_once() {
    let text = include_str!("../../src/sql/outbox/inspect_status.sql");
    let mut steps = Vec::new();
    for many in [1_000, 2_000] {
        let (_directory, path, store) = store().await;
        drop(store);
        let connection = Connection::open(path).unwrap();
        let fill = format!(
            "INSERT INTO message (id, topic, key, payload, published_ms)
                WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {many})
                SELECT n, 't', 'k', x'7b7d', 0 FROM n;
            UPDATE lane SET cursor = {many};
            INSERT INTO aside (id, lane, topic, key_hash, sink, state, attempts, reason, on_dead, due_ms)
                SELECT id, lane, 't', 7, 's', iif(id = {many}, 'dead', 'behind'), 1, '', 'park', 0 FROM message"
        );
        connection.execute_batch(&fill).unwrap();
        let mut status = connection.prepare(text).unwrap();
        let counted = status.query_row([], |row| Ok((row.get("dead")?, row.get("outstanding")?)));
        assert_eq!(counted.unwrap(), (1, many - 1), "only what follows a parked one");
        steps.push(status.get_status(StatementStatus::VmStep));
    }
    assert!(steps[1] < steps[0] * 5 / 2, "{steps:?}");
}

#[tokio::test]
async fn every_statement_is_served_by_an_index() {
    let (_directory, path, _store) = store().await;
    let connection = Connection::open(path).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sql");
    let files = [folder.join("outbox"), folder].map(|folder| fs::read_dir(folder).unwrap());
    let files = files.into_iter().flatten().map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let text = fs::read_to_string(&file).unwrap();
        for step in plan(&connection, &text) {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap();
            let expected = FOR_PEOPLE.contains(&(name, step.as_str()));
            assert!(expected || !grows(&step), "{}: {step}", file.display());
        }
    }
}

/// Whether a step of a plan takes longer the more runs have been settled or have failed, or the more
/// messages were sent or set aside.
fn grows(step: &str) -> bool {
    let small = [
        "VIRTUAL TABLE",
        "USING INDEX batch_running",
        "CONSTANT ROW",
        "sqlite_master",
        "SCAN pace",
        "SCAN due",
    ];
    let scan = step.starts_with("SCAN")
        && !small.iter().any(|name| step.contains(name))
        && !SMALL_IN_OUTBOX.contains(&step);
    scan || step == "SEARCH exception USING PRIMARY KEY (batch_id=?)"
        || step == "SEARCH aside USING INDEX aside_state (state=?)"
}

/// Tables with a row per lane, sink or relay, and what a step before has found.
const SMALL_IN_OUTBOX: [&str; 14] = [
    "SCAN open",
    "SCAN share",
    "SCAN waiting",
    "SCAN settlement",
    "SCAN lane",
    "SCAN lag",
    "SCAN relay",
    "SCAN sink_trouble",
    "SCAN sqlite_sequence",
    "SCAN outbox_unread",
    "SCAN head",
    "SCAN first",
    "SCAN line",
    "SCAN counted",
];

/// Where people ask for all that was set aside, or for all that is dead.
const FOR_PEOPLE: [(&str, &str); 5] = [
    ("inspect_status.sql", "SCAN stuck"),
    ("inspect_status.sql", "SEARCH aside USING INDEX aside_state (state=?)"),
    ("inspect_dead.sql", "SEARCH aside USING INDEX aside_state (state=?)"),
    ("steer_retry.sql", "SEARCH aside USING INDEX aside_state (state=?)"),
    ("steer_drop.sql", "SEARCH aside USING INDEX aside_state (state=?)"),
];

fn plan(connection: &Connection, text: &str) -> Vec<String> {
    let mut query = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
    let mut rows = query.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get("detail").unwrap());
    }
    steps
}
