//! Retrying and dropping many dead messages: in pages, beside relays, whatever the planner believes.

use super::*;
use tidegate_core::outbox::{AuditLine, Decision, Selection, SteerPage, Steering};

const ALL_LANES: &str = "array(select n::smallint from generate_series(0, 63) as n)";

/// A database with dead messages, and statistics from when all were dead. `keys`: how many they share; none have
/// none.
async fn dead(many: usize, keys: usize) -> (Database, Postgres) {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let key = if keys == 0 { "null".to_owned() } else { format!("'k' || n % {keys}") };
    database
        .execute(&format!(
            "insert into tidegate.message_0 (id, topic, key, payload)
                select n, 't', {key}, '{{}}' from generate_series(1, {many}) as n;
            select setval('tidegate.message_id', {many});
            insert into tidegate.aside
                (lane, id, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
                select tidegate.lane_of(m.key, m.id), m.id, 't', hashtextextended(m.key, 7), 's', 'dead', 5,
                    'bad luck', 'skip', now()
                from tidegate.message_0 m;
            update tidegate.lane set cursor = {many};
            analyze tidegate.aside"
        ))
        .await;
    (database, store)
}

fn page(decision: Decision, most: usize) -> SteerPage {
    let (which, after) = (Selection::default(), None);
    SteerPage { decision, which, by: AuditLine::default(), after, most, line: None }
}

/// Counts what the statement reads in its own session, where nothing else adds to it.
async fn reads_of(database: &Database, sql: &str) -> f64 {
    let client = database.client().await;
    let count = "select coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::float8
        from pg_class c
        where c.oid = 'tidegate.aside'::regclass
            or c.oid in (select i.indexrelid from pg_index i where i.indrelid = 'tidegate.aside'::regclass)";
    run(&client, "begin").await;
    client.query(sql, &[]).await.unwrap();
    let read = client.query_one(count, &[]).await.unwrap().get(0);
    run(&client, "commit").await;
    read
}

#[tokio::test]
async fn a_page_reads_as_much_as_it_changes_whatever_the_statistics() {
    for keys in [0, 7, 4_000] {
        let mut per_page = Vec::new();
        let (database, _store) = dead(4_000, keys).await;
        for after in [0, 1_000, 2_000, 3_000] {
            let sql = format!(
                "select * from tidegate.retry_dead(null, null, null, null, {after}, 1000, 'a', 'b', null)"
            );
            per_page.push(reads_of(&database, &sql).await);
        }
        // The page, each message by its id, and the first of its key.
        let most = per_page.iter().copied().fold(0.0, f64::max);
        assert!(most > 1_000.0 && most < 12_000.0, "{keys} keys: {per_page:?}");
        let due = format!(
            "select * from tidegate.due({ALL_LANES}, '{{}}', '{{}}', 100, 10, 1000000, '-infinity')"
        );
        let read = reads_of(&database, &due).await;
        assert!(read < 6_000.0, "{keys} keys: {read} to find 100 that are due");
        let closed = due.replacen("'{}', 100", "'{s}', 100", 1);
        let read = reads_of(&database, &closed).await;
        assert!(read < 200.0, "{keys} keys: {read} to find that a sink takes no more");
        let tend = format!("select tidegate.tend({ALL_LANES}, true)");
        let read = reads_of(&database, &tend).await;
        assert!(read < 30_000.0, "{keys} keys: {read} to look at all of it");
    }
}

/// A relay goes on beside a command that is stopped in the middle and repeated.
#[tokio::test]
async fn what_is_done_stays_done_and_the_command_can_be_repeated() {
    let (database, store) = dead(3_500, 50).await;
    let mut steering = Steering::new(Decision::Retry, Selection::default(), AuditLine::default());
    assert!(steering.step(&store).await.unwrap());
    assert_eq!(steering.messages(), 1_000);
    drop(steering);
    assert_eq!(store.retry_dead(Selection::default(), &AuditLine::default()).await.unwrap(), 2_500);
    let count = "select state, count(*) from tidegate.aside group by 1 order by 1";
    assert_eq!(database.rows(count).await.concat(), ["behind", "3450", "retry", "50"]);
    let heads = "select count(*) from tidegate.aside where state = 'retry' and id <= 50";
    assert_eq!(database.rows(heads).await.concat(), ["50"], "of each key, the first");
    let audit = "select messages from tidegate.audit order by id";
    assert_eq!(database.rows(audit).await.concat(), ["1000", "2500"], "a line for each command");
}

/// The settlement's view is from before the page; what it leaves without a head is found when lanes are shared.
#[tokio::test]
async fn a_settlement_that_did_not_see_a_page_leaves_no_key_behind() {
    let (database, store) = dead(2, 1).await;
    let client = database.client().await;
    // The first is due again, the second waits behind it.
    assert_eq!(store.steer_dead(page(Decision::Retry, 10)).await.unwrap().messages, 2);
    // Then the first is done, by one who does not know that the second waits.
    run(&client, "delete from tidegate.aside where id = 1").await;
    let lane = "select lane from tidegate.aside where id = 2";
    let lane = database.rows(lane).await.concat().concat();
    let state = "select state from tidegate.aside where id = 2";
    assert_eq!(database.rows(state).await.concat(), ["behind"]);
    let disturbed = format!("select disturbed from tidegate.lane where lane = {lane}");
    assert_eq!(database.rows(&disturbed).await.concat(), ["t"]);
    let tend = format!("select tidegate.tend_noted(array[{lane}]::smallint[], 10)");
    // It is found soon, and looked for once more when no settlement can be on its way any longer.
    for (time, disturbs) in [("due_at", "t"), ("last_at", "f")] {
        let later = format!(
            "update tidegate.look_again
            set due_at = due_at - ({time} - now()), last_at = last_at - ({time} - now())"
        );
        run(&client, "update tidegate.aside set state = 'behind' where id = 2").await;
        run(&client, &later).await;
        assert_eq!(database.rows(&tend).await.concat(), ["f"]);
        assert_eq!(database.rows(state).await.concat(), ["retry"], "{time}");
        assert_eq!(database.rows(&disturbed).await.concat(), [disturbs], "{time}");
    }
}

/// What is noted, and how long the relays look at it, does not grow with the messages.
#[tokio::test]
async fn a_key_is_noted_once_however_many_messages_are_retried() {
    let (database, store) = dead(4_000, 50).await;
    assert_eq!(store.retry_dead(Selection::default(), &AuditLine::default()).await.unwrap(), 4_000);
    let noted =
        "select count(*), count(distinct key_hash), bool_and(last_at - due_at >= interval '39 s')
        from tidegate.look_again";
    assert_eq!(database.rows(noted).await.concat(), ["50", "50", "t"]);
    // Looked at once, they wait for the last time; a decision in between makes them due sooner.
    let client = database.client().await;
    let passed = "update tidegate.look_again set due_at = due_at - interval '10 s'";
    run(&client, passed).await;
    let tend = format!("select tidegate.tend_noted({ALL_LANES}, 1000)");
    assert_eq!(database.rows(&tend).await.concat(), ["f"]);
    let waits = "select count(*) from tidegate.look_again where due_at = last_at";
    assert_eq!(database.rows(waits).await.concat(), ["50"]);
    run(&client, "update tidegate.aside set state = 'dead' where id in (51, 101)").await;
    assert_eq!(store.retry_dead(Selection::default(), &AuditLine::default()).await.unwrap(), 2);
    assert_eq!(database.rows(waits).await.concat(), ["49"], "both are of one key");
    // The migration keeps them, whoever applies it again.
    database.execute(&tidegate_postgres::script()).await;
    let noted = "select count(*) from tidegate.look_again";
    assert_eq!(database.rows(noted).await.concat(), ["50"]);
}

/// Neither a look at what is due nor a decision passes what waits for other sinks, or behind other keys.
#[tokio::test]
async fn what_waits_elsewhere_is_not_read() {
    for (first, last) in [("a", "z"), ("z", "a")] {
        let mut reads = Vec::new();
        for many in [2_000, 20_000] {
            let (database, _store) = dead(many, many / 4).await;
            let client = database.client().await;
            // In one lane. All but twenty wait for one sink, four of each key; the others are of the other sink, two
            // of each.
            run(
                &client,
                &format!(
                    "insert into tidegate.aside_sink values ('{first}'), ('{last}') on conflict do nothing;
                    update tidegate.aside set lane = 5, sink = '{last}', due_at = now() - interval '1 s',
                        state = case when id <= {many} / 4 then 'retry' else 'behind' end;
                    update tidegate.aside set sink = '{first}', key_hash = id / 2,
                        state = case when id % 2 = 0 then 'retry' else 'behind' end
                    where id <= 20;
                    update tidegate.aside set sink = '{first}', key_hash = id, state = 'dead'
                    where id between 31 and 40"
                ),
            )
            .await;
            run(&client, "vacuum tidegate.aside").await;
            let due = |closed: &str| {
                format!(
                    "select * from tidegate.due(
                        {ALL_LANES}, '{{}}', '{{{closed}}}', 100, 100, 1000000, '-infinity')"
                )
            };
            let retry = "select * from tidegate.retry_dead(
                array(select generate_series(31, 40)), null, null, null, 0, 1000, 'a', 'b', null)";
            reads.push([
                blocks_of(&client, &due(last)).await,
                blocks_of(&client, &due("")).await,
                blocks_of(&client, retry).await,
            ]);
        }
        for (few, many) in reads[0].iter().zip(&reads[1]) {
            assert!(*many < few + 500, "{first}: {reads:?}");
        }
    }
}

/// Pages that a statement looks at, also those of which nothing fits.
async fn blocks_of(client: &Client, sql: &str) -> i64 {
    let sql = format!("explain (analyze, buffers, format json) {sql}");
    // Once before, for what is only looked up the first time.
    client.query_one(&sql, &[]).await.unwrap();
    let plan: String = client
        .simple_query(&sql)
        .await
        .unwrap()
        .iter()
        .filter_map(|it| match it {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .collect();
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let blocks = |name: &str| plan[0]["Plan"][name].as_i64().unwrap();
    blocks("Shared Hit Blocks") + blocks("Shared Read Blocks")
}

/// A server may be told not to wait for the disk: what is shown as done is on the disk all the same.
#[tokio::test]
async fn decisions_are_durable_whatever_the_server_does_by_default() {
    let (database, _) = dead(20, 3).await;
    database
        .execute(
            "do $$ begin
                execute format('alter database %I set synchronous_commit = off', current_database());
            end $$;
            create table seen (synchronous_commit text);
            create function note() returns trigger language plpgsql as $$
            begin
                insert into seen values (current_setting('synchronous_commit'));
                return null;
            end $$;
            create constraint trigger at_commit after insert or update on tidegate.audit
            deferrable initially deferred for each row execute function note()",
        )
        .await;
    let store = database.store().await;
    for decision in [Decision::Retry, Decision::Drop] {
        assert_eq!(store.steer_dead(page(decision, 5)).await.unwrap().messages, 5);
    }
    let seen = database.rows("select synchronous_commit from seen").await.concat();
    assert_eq!(seen, ["local", "local"]);
}

/// The status is there for those who have much that is set aside: what it reads does not grow with the square of
/// it, whatever the planner believes.
#[tokio::test]
async fn the_status_reads_what_was_set_aside_once() {
    for keys in [1, 40] {
        let (database, store) = dead(4_000, keys).await;
        let client = database.client().await;
        run(&client, "update tidegate.aside set state = 'behind', on_dead = 'skip' where id > 50")
            .await;
        run(&client, "update tidegate.aside set on_dead = 'park' where id = 40").await;
        let read = reads_of(&database, include_str!("../../src/sql/outbox/status.sql")).await;
        assert!(read < 20_000.0, "{keys} keys: {read} for 4,000 messages");
        let topic = &store.outbox().await.unwrap().topics[0];
        // The key of message 40 is that of every 40th, or of all.
        let (parked, dead) = (3_950 / keys as u64, 50);
        let counted = topic.dead - dead;
        assert!(counted.abs_diff(parked) <= 1, "{keys} keys: {topic:?}");
        assert_eq!(topic.outstanding + topic.dead, 4_000, "{topic:?}");
    }
}

/// A relay's lease does not depend on it: the lanes stay disturbed, and are looked at later.
#[tokio::test]
async fn lanes_are_renewed_although_their_keys_cannot_be_looked_at() {
    let (database, store) = dead(2, 1).await;
    let relay = WorkerId("a relay".to_owned());
    let (epoch, held, routes) = Default::default();
    let share = Share { relay, epoch, held, routes, lease: LEASE };
    let Shared { epoch, gained, .. } = store.share_lanes(share.clone()).await.unwrap();
    assert_eq!(gained.len(), 64);
    store.steer_dead(page(Decision::Retry, 10)).await.unwrap();
    database
        .execute(
            "create or replace function tidegate.tend_noted(lanes smallint[], most bigint)
            returns boolean language plpgsql as $$ begin raise 'out of order'; end $$",
        )
        .await;
    let held: Vec<_> = gained.iter().map(|gained| gained.lease).collect();
    let shared = store.share_lanes(Share { epoch, held, ..share }).await.unwrap();
    assert_eq!((shared.lost, shared.gained.len()), (Vec::new(), 0));
}
