//! Settlements beside much that was set aside.

use super::*;
use tokio_postgres::types::Type;

const SETTLE: &str = include_str!("../../src/sql/outbox/settle.sql");
const AT_ONCE: i64 = 200;

/// How the planner came to think what it thinks of what was set aside.
#[derive(Clone, Copy, Debug)]
enum Statistics {
    /// There was nothing.
    Empty,
    /// All was dead.
    Dead,
    /// All had the same key.
    OneKey,
    /// As it is.
    Present,
}

/// How many keys messages have, and in how many lanes they are.
#[derive(Clone, Copy, Debug)]
struct Spread {
    keys: i64,
    lanes: i64,
}

async fn much(many: i64, spread: Spread, statistics: Statistics) -> Database {
    let database = Database::create(POSTGRES).await;
    database.store().await;
    let Spread { keys, lanes } = spread;
    let fill = |lane: &str, key: &str, state: &str| {
        format!(
            "insert into tidegate.aside
                (lane, id, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
                select {lane}, n, 't', {key}, 's', {state}, 1, 'bad luck', 'skip', now()
                from generate_series(1, {many}) as n;"
        )
    };
    let (lane, key) = (format!("n % {keys} % {lanes}"), format!("n % {keys}"));
    let state = format!("case when n <= {keys} then 'retry' else 'behind' end");
    let before = match statistics {
        Statistics::Empty => String::new(),
        Statistics::Dead => fill(&lane, &key, "'dead'"),
        Statistics::OneKey => fill("0", "0", &state),
        Statistics::Present => fill(&lane, &key, &state),
    };
    let setup = "alter table tidegate.aside set (autovacuum_enabled = off)";
    let then = fill(&lane, &key, &state);
    database.execute(setup).await;
    database
        .execute(&format!("{before} analyze tidegate.aside; truncate tidegate.aside; {then}"))
        .await;
    database
}

/// How many pages of what was set aside a settlement touches, also in indexes: the first are done, others fail again.
async fn touches(database: &Database, spread: Spread) -> i64 {
    let count = "select coalesce(sum(pg_stat_get_xact_blocks_fetched(c.oid)), 0)::bigint
        from pg_class c
        where c.oid = 'tidegate.aside'::regclass
            or c.oid in (select i.indexrelid from pg_index i where i.indrelid = 'tidegate.aside'::regclass)";
    let store = database.connect().await;
    let relay = Relay::start(&store).await;
    let lanes: Vec<i16> = relay.lanes.iter().map(|it| it.lease.lane.0 as i16).collect();
    let fences: Vec<i64> = relay.lanes.iter().map(|it| it.lease.fence.0).collect();
    let cursors = vec![0_i64; lanes.len()];
    let states: Vec<Option<&str>> = vec![None; lanes.len()];
    let done: Vec<i64> = (1..=AT_ONCE).collect();
    let failed: Vec<i64> = (AT_ONCE + 1..=2 * AT_ONCE).collect();
    let lane_of = |id: &i64| (id % spread.keys % spread.lanes) as i16;
    let their_lanes: Vec<i16> = failed.iter().map(lane_of).collect();
    let keys: Vec<i64> = failed.iter().map(|id| id % spread.keys).collect();
    let all = |text: &'static str| vec![text; failed.len()];
    let (attempts, delays) = (vec![2_i32; failed.len()], vec![0_i64; failed.len()]);
    let client = database.client().await;
    run(&client, "begin").await;
    let before: i64 = client.query_one(count, &[]).await.unwrap().get(0);
    let rows = client
        .query_typed(
            SETTLE,
            &[
                (&lanes, Type::INT2_ARRAY),
                (&fences, Type::INT8_ARRAY),
                (&cursors, Type::INT8_ARRAY),
                (&states, Type::TEXT_ARRAY),
                (&their_lanes, Type::INT2_ARRAY),
                (&failed, Type::INT8_ARRAY),
                (&all("t"), Type::TEXT_ARRAY),
                (&keys, Type::INT8_ARRAY),
                (&all("s"), Type::TEXT_ARRAY),
                (&all("retry"), Type::TEXT_ARRAY),
                (&attempts, Type::INT4_ARRAY),
                (&all("bad luck"), Type::TEXT_ARRAY),
                (&all("skip"), Type::TEXT_ARRAY),
                (&delays, Type::INT8_ARRAY),
                (&done, Type::INT8_ARRAY),
                (&1_i64, Type::INT8),
                (&relay.epoch.0, Type::TEXT),
            ],
        )
        .await
        .unwrap();
    assert_eq!(rows[0].get::<_, Vec<i16>>("held").len(), 64);
    let after: i64 = client.query_one(count, &[]).await.unwrap().get(0);
    after - before
}

#[tokio::test]
async fn a_settlement_reads_as_much_as_it_changes_whatever_the_statistics() {
    use Statistics::{Dead, Empty, OneKey, Present};
    for (statistics, lanes, keys) in [
        (Empty, 1, None),
        (Dead, 1, None),
        (Present, 1, None),
        (OneKey, 1, None),
        (OneKey, 64, None),
        (OneKey, 1, Some(7)),
    ] {
        let mut seen = Vec::new();
        for many in [2_000, 20_000] {
            let spread = Spread { keys: keys.unwrap_or(many), lanes };
            let database = much(many, spread, statistics).await;
            seen.push(touches(&database, spread).await);
        }
        // Indexes may be a level higher.
        assert!(seen[1] < seen[0] * 2 + 1_000, "{statistics:?} {lanes} {keys:?}: {seen:?}");
    }
}
