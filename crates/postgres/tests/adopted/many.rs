//! Tables of which much was set aside: what is read and done does not grow with it, whatever the planner believes.

use crate::{
    ENTITY_OUTBOX, adopt, adopt_entities, drain_to, entities, impatient, key, lease::everything,
    options, plan, relay, server::Server, sink::Fake, support::Database, until, write,
};
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_core::{
    InspectOutbox, Outbox, WorkerId,
    outbox::{
        AuditLine, Decision, Epoch, GiveBack, Pattern, Route, Selection, Share, Shared, SteerPage,
    },
};
use tidegate_engine::Stop;
use tidegate_postgres::{
    Adopted,
    adopted::{Mapping, Preset},
};

const TABLE: &str = "public.entity_outbox";

/// Rows of one topic and sink that were set aside, in a state. `keys`: how many they share; none have none.
fn aside(many: usize, keys: usize, state: &str) -> String {
    let key = if keys == 0 {
        "null".to_owned()
    } else {
        format!("hashtextextended('k' || n % {keys}, 7)")
    };
    format!(
        "insert into tidegate.adopted (adopted, fence, expires_at, last_id)
            values ('{TABLE}', 1, now(), {many}) on conflict do nothing;
        insert into tidegate.adopted_aside
            (adopted, id, row_key, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
            select '{TABLE}', n, gen_random_uuid()::text, 't', {key}, 's', '{state}', 5, 'bad luck', 'skip', now()
            from generate_series(1, {many}) as n"
    )
}

/// A database with dead rows, and statistics from when all were dead.
async fn dead(many: usize, keys: usize) -> Database {
    let database = entities().await;
    database.execute("alter table tidegate.adopted_aside set (autovacuum_enabled = off)").await;
    database.execute(&aside(many, keys, "dead")).await;
    database.execute("analyze tidegate.adopted_aside, tidegate.adopted_look_again").await;
    database
}

/// How many pages of a table and its indexes a statement touches. What an index passes without handing it out
/// counts, too.
async fn touches(database: &Database, table: &str, sql: &str) -> i64 {
    let client = database.client().await;
    let count = format!(
        "select coalesce(sum(pg_stat_get_xact_blocks_fetched(c.oid)), 0)::bigint
        from pg_class c
        where c.oid = '{table}'::regclass
            or c.oid in (select i.indexrelid from pg_index i where i.indrelid = '{table}'::regclass)"
    );
    client.batch_execute("begin").await.unwrap();
    let before: i64 = client.query_one(&count, &[]).await.unwrap().get(0);
    client.query(sql, &[]).await.unwrap();
    let after: i64 = client.query_one(&count, &[]).await.unwrap().get(0);
    client.batch_execute("commit").await.unwrap();
    after - before
}

/// How many keys messages have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spread {
    None,
    Few,
    Each,
}

#[tokio::test]
async fn every_page_reads_as_much_as_it_changes_whatever_the_statistics() {
    const ASIDE: &str = "tidegate.adopted_aside";
    for spread in [Spread::None, Spread::Few, Spread::Each] {
        let mut seen = Vec::new();
        for many in [4_000, 40_000] {
            let keys = match spread {
                Spread::None => 0,
                Spread::Few => 7,
                Spread::Each => many,
            };
            let database = dead(many, keys).await;
            let retry = |after| {
                format!(
                    "select * from tidegate.retry_adopted(
                        '{TABLE}', null, null, null, null, {after}, 50, 'a', 'b', null)"
                )
            };
            let first = touches(&database, ASIDE, &retry(0)).await;
            // The rest is due, or waits behind the first of its key.
            let state = if spread == Spread::Few { "behind" } else { "retry" };
            database
                .execute(&format!(
                    "update tidegate.adopted_aside set state = '{state}', due_at = now()
                    where state = 'dead' and id <= {many} - 500"
                ))
                .await;
            let last = touches(&database, ASIDE, &retry(many - 500)).await;
            let due = |closed: &str| {
                format!(
                    "select * from tidegate.due_adopted('{TABLE}', '{{1,2}}', '{closed}', 100, 10)"
                )
            };
            let (open, closed) = (
                touches(&database, ASIDE, &due("{}")).await,
                touches(&database, ASIDE, &due("{s}")).await,
            );
            let take = format!(
                "select * from tidegate.take_adopted_page('{TABLE}', 100, '', -9223372036854775808, 0)"
            );
            let take = touches(&database, ASIDE, &take).await;
            let reroute = format!(
                "select * from tidegate.reroute_adopted_page('{TABLE}', '{{.*}}', '{{s}}', 100, null, null)"
            );
            let reroute = touches(&database, ASIDE, &reroute).await;
            let moved = format!(
                "select * from tidegate.reroute_adopted_page('{TABLE}', '{{.*}}', '{{r}}', 100, null, null)"
            );
            let moved = touches(&database, ASIDE, &moved).await;
            seen.push([first, last, open, closed, take, reroute, moved]);
        }
        for (n, (few, all)) in seen[0].iter().zip(&seen[1]).enumerate() {
            // An index may be a level higher.
            assert!(*all < few * 2 + 40, "{n} of {spread:?}: {seen:?}");
        }
    }
}

#[tokio::test]
async fn noted_keys_are_looked_at_in_pages_whatever_the_statistics() {
    let mut seen = Vec::new();
    for many in [4_000, 40_000] {
        let database = entities().await;
        database.execute(&aside(1, 0, "dead")).await;
        database
            .execute(&format!(
                "insert into tidegate.adopted_look_again (adopted, sink, key_hash, due_at, last_at)
                    select '{TABLE}', 's', n, now(), now() + interval '40 s' from generate_series(1, {many}) as n;
                analyze tidegate.adopted_look_again"
            ))
            .await;
        let tend = format!("select tidegate.tend_noted_adopted('{TABLE}', 100)");
        seen.push(touches(&database, "tidegate.adopted_look_again", &tend).await);
    }
    assert!(seen[1] < seen[0] * 2 + 40, "{seen:?}");
}

fn share_of(relay: &str, lease: Duration) -> Share {
    let routes = vec![Route { topics: Pattern("*".to_owned()), sink: "s".to_owned() }];
    Share {
        relay: WorkerId(relay.to_owned()),
        epoch: Epoch::default(),
        held: Vec::new(),
        routes,
        lease,
    }
}

/// With so much set aside that it takes several leases to look at it, the lease is renewed meanwhile, nobody else
/// gets the table, and in the end the relay knows every key that waits.
#[tokio::test]
async fn a_table_is_taken_over_while_its_lease_is_renewed() {
    let database = entities().await;
    database.execute(&aside(40_000, 3_000, "behind")).await;
    // Each page takes as long as if there were a hundred times as much.
    database
        .execute(
            "alter function tidegate.take_adopted_page rename to take_adopted_page_at_once;
            create function tidegate.take_adopted_page(
                which text, most bigint, inout at_sink text, inout at_key bigint, inout at_id bigint,
                out sinks text[], out keys bigint[]
            ) language plpgsql as $$
            begin
                perform pg_sleep(0.4);
                select t.* into at_sink, at_key, at_id, sinks, keys
                from tidegate.take_adopted_page_at_once(which, most, at_sink, at_key, at_id) as t;
            end $$",
        )
        .await;
    let (one, other) = (adopt_entities(&database).await, adopt_entities(&database).await);
    let lease = Duration::from_secs(6);
    let mut shares = 0;
    let (gained, epoch) = loop {
        let begun = Instant::now();
        let Shared { gained, epoch, .. } = one.share_lanes(share_of("one", lease)).await.unwrap();
        shares += 1;
        let refused = other.share_lanes(share_of("other", lease)).await.unwrap();
        assert!(refused.gained.is_empty() && refused.relays == 2, "after {:?}", begun.elapsed());
        if !gained.is_empty() {
            break (gained, epoch);
        }
    };
    assert!(shares > 1, "it took one share");
    let held: BTreeSet<_> = gained.iter().flat_map(|it| &it.held).map(|it| it.key).collect();
    assert_eq!(held.len(), 3_000);
    assert!(gained.iter().all(|it| it.held.iter().all(|held| held.lane == it.lease.lane)));
    let heads = "select count(*) from tidegate.adopted_aside where state = 'retry'";
    assert_eq!(database.rows(heads).await.concat(), ["3000"], "of each key the first");
    // It holds the lease as any other.
    let held = gained.iter().map(|gained| gained.lease).collect();
    let renewed = one.share_lanes(Share { epoch, held, ..share_of("one", lease) }).await.unwrap();
    assert!(renewed.lost.is_empty() && renewed.gained.is_empty());
}

/// A relay that stops before it knows all of it gives the table back all the same.
#[tokio::test]
async fn a_table_that_is_being_taken_over_is_given_back() {
    let database = entities().await;
    database.execute(&aside(40_000, 40_000, "behind")).await;
    let (one, other) = (adopt_entities(&database).await, adopt_entities(&database).await);
    let short = share_of("one", Duration::from_millis(3));
    assert!(one.share_lanes(short).await.unwrap().gained.is_empty());
    // From here on, it has the table for long.
    let renew = "update tidegate.adopted set expires_at = now() + interval '1 h'";
    database.execute(renew).await;
    let long = share_of("other", Duration::from_secs(60));
    assert!(other.share_lanes(long.clone()).await.unwrap().gained.is_empty());
    let relay = WorkerId("one".to_owned());
    one.give_back_lanes(GiveBack { relay, lanes: Vec::new(), ends: true }).await.unwrap();
    assert_eq!(other.share_lanes(long).await.unwrap().gained.len(), 64);
}

/// The server forgets at once what it does not have to remember.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_decide_is_durable_when_they_are_told() {
    let mut server =
        Server::start("synchronous_commit = off\nwal_writer_delay = 10s\nautovacuum = off");
    server.store().await;
    let client = server.client().await;
    client.batch_execute(ENTITY_OUTBOX).await.unwrap();
    client.batch_execute(&aside(20, 3, "dead")).await.unwrap();
    client.batch_execute("checkpoint").await.unwrap();
    for (decision, left) in [(Decision::Retry, 13_i64), (Decision::Drop, 6)] {
        let url = server.cluster.url();
        let adopted = Adopted::open(&url, Mapping::of(Preset::EntityOutbox)).await.unwrap();
        let (which, after, by) = (Selection::default(), None, AuditLine::default());
        let page = SteerPage { decision, which, by, after, most: 7, line: None };
        assert_eq!(adopted.steer_dead(page).await.unwrap().messages, 7);
        tokio::task::block_in_place(|| server.restart());
        let client = server.client().await;
        let sql = "select count(*) from tidegate.adopted_aside where state = 'dead'";
        let dead: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(dead, left, "{decision:?}");
    }
}

/// What the filter leaves out now is in nobody's way, and comes back with the filter that takes it.
#[tokio::test]
async fn what_the_filter_leaves_out_holds_nothing_up() {
    let database = entities().await;
    for entity in ["a", "b", "c", "d", "e"] {
        write(&database, entity, &[("INSERT", "bad"), ("UPDATE", "bad")]).await;
    }
    database
        .execute("update entity_outbox set target_store = 'other' where entity_id >= 'd'")
        .await;
    let (all, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    assert_eq!(drain_to(&all, &sink).await.dead, 10);
    assert_eq!(all.retry_dead(Selection::default(), &AuditLine::default()).await.unwrap(), 10);
    sink.mend();
    let filter = [("target_store".to_owned(), "other".to_owned())].into();
    let others = adopt(&database, Mapping { filter, ..Mapping::of(Preset::EntityOutbox) }).await;
    assert_eq!(drain_to(&others, &sink).await.delivered, 4);
    let states = "select state, count(*) from tidegate.adopted_aside group by 1";
    assert_eq!(database.rows(states).await.concat(), ["unrouted", "6"]);
    assert_eq!(drain_to(&all, &sink).await.delivered, 6);
    for entity in ["a", "e"] {
        assert_eq!(sink.of_key(&key(entity), Some("operation")), ["INSERT", "UPDATE"]);
    }
}

/// Rows that died, the index that is advised, and as many times as `times` says. Their statistics are from before.
async fn dead_rows(many: usize, times: &str) -> Database {
    let database = entities().await;
    database
        .execute(&format!(
            "create index on entity_outbox (created_at) where processed_at is null;
            alter table entity_outbox set (autovacuum_enabled = off);
            alter table tidegate.adopted_aside set (autovacuum_enabled = off);
            insert into entity_outbox (repository_id, entity_id, operation, target_store, payload, created_at)
                select '00000000-0000-0000-0000-000000000001', 'e' || n, 'INSERT', 'qdrant', '{{}}', {times}
                from generate_series(1, {many}) as n;
            insert into tidegate.adopted (adopted, fence, expires_at, last_id)
                values ('{TABLE}', 1, now(), {many});
            insert into tidegate.adopted_aside
                (adopted, id, row_key, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
                select '{TABLE}', row_number() over (), outbox_id::text, 'qdrant', hashtextextended(entity_id, 7), 'to *', 'dead', 5,
                    'bad luck', 'skip', now()
                from entity_outbox"
        ))
        .await;
    database
}

const ONE_BY_ONE: &str = "now() - interval '1 day' + n * interval '1 ms'";
const AT_ONCE: &str = "now() - interval '1 day'";

/// How many pages of some tables and their indexes were touched so far, by those who have gone.
async fn touched(database: &Database) -> i64 {
    let gone = "select count(*)::text from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()";
    until(database, gone, &["0"]).await;
    touched_so_far(database).await
}

async fn touched_so_far(database: &Database) -> i64 {
    let count = "select sum(pg_stat_get_blocks_fetched(c.oid))::bigint
        from pg_class c
        where c.oid = any (tables.oids)
            or c.oid in (select i.indexrelid from pg_index i where i.indrelid = any (tables.oids))";
    let tables = "array['entity_outbox'::regclass, 'tidegate.adopted_aside'::regclass]::oid[]";
    let sql = count.replace("tables.oids", tables);
    database.rows(&sql).await.concat().concat().parse().unwrap()
}

/// What a relay's claims touch in one session, beside what it takes to take the table over.
async fn touched_by_claims(database: &Database) -> i64 {
    let mut all = Vec::new();
    let mut before = touched(database).await;
    for claims in [0, 20] {
        let adopted = adopt_entities(database).await;
        let share = share_of("one", Duration::from_secs(60));
        let gained = adopted.share_lanes(share.clone()).await.unwrap().gained;
        for _ in 0..claims {
            let claim = adopted.claim_messages(everything(&gained)).await.unwrap();
            assert!(claim.readings[0].messages.is_empty() && !claim.readings[0].more);
        }
        let lanes = gained.iter().map(|gained| gained.lease).collect();
        let give_back = GiveBack { relay: share.relay, lanes, ends: true };
        adopted.give_back_lanes(give_back).await.unwrap();
        drop(adopted);
        let after = touched(database).await;
        all.push(after - before);
        before = after;
    }
    all[1] - all[0]
}

#[tokio::test]
async fn claims_read_no_more_however_many_rows_are_dead() {
    for times in [ONE_BY_ONE, AT_ONCE] {
        let mut seen = Vec::new();
        for many in [10_000, 40_000] {
            let database = dead_rows(many, times).await;
            seen.push(touched_by_claims(&database).await);
        }
        assert!(seen[1] < seen[0] * 3 / 2, "{times}: {seen:?}");
    }
}

/// The planner believes that nothing is due, and that every index for what is due is empty.
#[tokio::test]
async fn what_was_retried_costs_the_same_however_much_it_is() {
    let mut each = Vec::new();
    for many in [3_000, 24_000] {
        let database = dead_rows(many, ONE_BY_ONE).await;
        database.execute("vacuum analyze tidegate.adopted_aside").await;
        database.execute("update tidegate.adopted_aside set state = 'retry', due_at = now()").await;
        let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
        let before = touched_so_far(&database).await;
        assert_eq!(drain_to(&adopted, &sink).await.delivered, many as u64);
        drop(adopted);
        each.push((touched(&database).await - before) / many as i64);
    }
    assert!(each[1] < each[0] * 2, "pages touched for each row: {each:?}");
}

/// A row that is committed long after later ones, or wanted again, is delivered all the same.
#[tokio::test]
async fn a_row_far_behind_all_that_is_dead_is_delivered() {
    for times in [ONE_BY_ONE, AT_ONCE] {
        let database = dead_rows(10_000, times).await;
        let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
        let running = relay(&adopted, plan(&[("*", &sink)], impatient()), options("runs"));
        let stop = Stop::new();
        let asked = stop.clone();
        let running = tokio::spawn(async move { running.run(asked).await });
        let done =
            "select entity_id::text from entity_outbox where processed_at is not null order by 1";
        write(&database, "a fresh one", &[("INSERT", "1")]).await;
        until(&database, done, &["a fresh one"]).await;
        let late = "insert into entity_outbox
                (repository_id, entity_id, operation, target_store, payload, created_at)
            select '00000000-0000-0000-0000-000000000001', 'late ' || n, 'INSERT', 'qdrant', '1', o.created_at
            from (select created_at from entity_outbox where entity_id = 'e5000') o
            cross join (values ('1'), ('2')) as n (n)";
        database.execute(late).await;
        until(&database, done, &["a fresh one", "late 1", "late 2"]).await;
        stop.stop();
        assert_eq!(running.await.unwrap().unwrap().counts.delivered, 3);
        assert_eq!(sink.got().len(), 3);
    }
}
