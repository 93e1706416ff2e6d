//! Removing what was sent while others use the same tables.

use super::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// A store whose first segment is closed, and everything in it was read and sent.
async fn sent(database: &Database) -> Postgres {
    let store = database.store().await;
    store.publish(["a", "b", "c"].map(new_message).to_vec()).await.unwrap();
    database.execute("update tidegate.lane set cursor = 3").await;
    store.seal(Duration::ZERO).await.unwrap().expect("everything was read");
    store
}

async fn rows_of(database: &Database, segment: u8) -> String {
    database
        .rows(&format!("select count(*) from tidegate.message_{segment}"))
        .await
        .concat()
        .concat()
}

/// Whatever lock another transaction has, claims do not wait behind retention, and it goes on afterwards.
#[tokio::test]
async fn no_claim_waits_behind_retention_that_waits_for_others() {
    let holders = [
        "select count(*) from tidegate.message_0",
        "lock table tidegate.message_0 in access share mode",
        "lock table tidegate.message_0 in row exclusive mode",
        "insert into tidegate.message_0 (id, topic, payload) values (4, 't', '')",
    ];
    for holding in holders {
        let database = Database::create(POSTGRES).await;
        let store = sent(&database).await;
        let holder = database.client().await;
        run(&holder, "begin").await;
        run(&holder, holding).await;
        let sealed = store.seal(Duration::ZERO).await.unwrap().expect("it is closed");
        let (ended, prober) = (Arc::new(AtomicBool::new(false)), database.client().await);
        // No lock that a claim needs is waited for longer than that, or the claim fails.
        let name = database.url().path().trim_start_matches('/').to_owned();
        database.execute(&format!("alter database {name} set lock_timeout = '50ms'")).await;
        let other = database.connect().await;
        let relay = Relay::start(&other).await;
        let claiming = async {
            while !ended.load(Ordering::Relaxed) {
                relay.look().await;
            }
        };
        let probing = async {
            // A claim behind a queued lock would wait until retention gives up, or for a lock that is never given.
            run(&prober, "set statement_timeout = '5s'").await;
            let (mut longest, mut waited) = (Duration::ZERO, 0);
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                run(&prober, "select count(*) from tidegate.message").await;
                longest = longest.max(begun.elapsed());
                waited += 1;
            }
            (longest, waited)
        };
        let discarding = async {
            let answer = store.discard(sealed).await;
            ended.store(true, Ordering::Relaxed);
            answer
        };
        let (answer, (longest, waited), ()) = tokio::join!(discarding, probing, claiming);
        let error = answer.expect_err(holding);
        assert!(error.is_passing(), "{error}");
        assert!(error.to_string().contains("process"), "it says who: {error}");
        assert!(waited > 0 && longest < Duration::from_secs(2), "{longest:?}");
        assert_eq!(rows_of(&database, 0).await, "3");
        run(&holder, "rollback").await;
        assert_eq!(store.discard(sealed).await.unwrap(), 3, "{holding}");
        assert_eq!(rows_of(&database, 0).await, "0");
    }
}

/// It holds its lock until it ends: then there is a message to be read.
#[tokio::test]
async fn what_an_open_transaction_published_into_a_closed_segment_is_kept() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    store.publish(vec![new_message("a")]).await.unwrap();
    let mut client = database.client().await;
    let transaction = client.transaction().await.unwrap();
    let late = tidegate_postgres::publish(&transaction, &[new_message("late")]).await.unwrap();
    store.publish(vec![new_message("b")]).await.unwrap();
    // Closed by somebody who believes that all was read.
    database.execute("select tidegate.rotate(0)").await;
    let turn = database.rows("select turn from tidegate.segment where segment = 0").await.concat();
    let discard = format!("select tidegate.discard({})", turn[0]);
    assert_eq!(database.rows(&discard).await.concat(), ["busy"]);
    transaction.commit().await.unwrap();
    assert_eq!(database.rows(&discard).await.concat(), ["changed"], "nothing of it was read");
    database.execute("update tidegate.lane set cursor = 1, settled_at = now()").await;
    assert_eq!(database.rows(&discard).await.concat(), ["changed"], "the late one was not read");
    assert_eq!(relay.ids().await, [1, late[0].as_number().unwrap(), 3]);
    database.execute("update tidegate.lane set cursor = 3, settled_at = now()").await;
    assert_eq!(database.rows(&discard).await.concat(), ["done"]);
    assert_eq!(database.rows(&discard).await.concat(), ["done"], "it is empty");
}

/// Whoever is slow must not remove what came into the same table later.
#[tokio::test]
async fn a_segment_is_removed_in_its_own_turn_only() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let sealed = store.seal(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(store.discard(sealed).await.unwrap(), 3);
    for id in 4..8 {
        store.publish(vec![new_message("a")]).await.unwrap();
        database.execute(&format!("update tidegate.lane set cursor = {id}")).await;
        let _ = store.seal(Duration::ZERO).await.unwrap();
    }
    assert_eq!(rows_of(&database, 0).await, "1", "its turn has come again");
    assert!(store.discard(sealed).await.is_err());
    assert_eq!(rows_of(&database, 0).await, "1");
}

#[tokio::test]
async fn one_process_at_a_time_removes_a_segment() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let sealed = store.seal(Duration::ZERO).await.unwrap().unwrap();
    database
        .execute("update tidegate.segment set discarding_until = now() + interval '1 hour'")
        .await;
    assert!(store.seal(Duration::ZERO).await.unwrap().is_none(), "somebody else does it");
    assert!(store.discard(sealed).await.unwrap_err().is_passing());
    database.execute("update tidegate.segment set discarding_until = now() - interval '1 s'").await;
    assert_eq!(store.discard(sealed).await.unwrap(), 3, "that one is gone");
}

/// Sealing looks at a bounded number of messages, however many there are.
#[tokio::test]
async fn a_large_segment_is_sealed_by_its_ids() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    database
        .execute(
            "insert into tidegate.message_0 (id, topic, payload) select n, 't', '' from generate_series(1, 10) n;
            insert into tidegate.message_0 (id, topic, payload) values (2000000, 't', '');
            insert into tidegate.aside (lane, id, topic, sink, state, attempts, reason, on_dead, due_at)
                values (3, 3, 't', 's', 'dead', 1, '', 'skip', now());
            select setval('tidegate.message_id', 2000000);
            update tidegate.lane set cursor = 2000000",
        )
        .await;
    let sealed = store.seal(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(sealed.messages, 1_999_999);
    assert_eq!(store.discard(sealed).await.unwrap(), 1_999_999);
    let kept = "select payload is not null from tidegate.aside";
    assert_eq!(
        database.rows(kept).await.concat(),
        ["t"],
        "what was set aside stays with its payload"
    );
}

/// Claims wait while it holds its lock: what reads messages of other segments comes before.
#[tokio::test]
async fn ids_are_looked_at_before_the_lock_is_taken() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let sealed = store.seal(Duration::ZERO).await.unwrap().unwrap();
    database
        .execute(
            "create or replace function tidegate.has_restarted_ids()
            returns boolean language plpgsql as $$
            begin
                if exists (
                    select from pg_locks l
                    where l.pid = pg_backend_pid() and l.mode = 'AccessExclusiveLock'
                        and l.relation = 'tidegate.message_0'::regclass
                ) then
                    raise 'claims wait';
                end if;
                return false;
            end $$",
        )
        .await;
    assert_eq!(store.discard(sealed).await.unwrap(), 3);
}

/// What `discard` holds while it waits for the segment: the segment is retiring until this transaction ends.
async fn retire(database: &Database) -> Client {
    let until = "update tidegate.segment set discarding_until = now() + interval '1 h'
        where segment = 0";
    database.execute(until).await;
    let client = database.client().await;
    let locks = "begin;
        lock table only tidegate.message_0 in share row exclusive mode;
        select pg_advisory_xact_lock('tidegate.message_0'::regclass::oid::integer, 22)";
    run(&client, locks).await;
    assert_eq!(database.rows("select tidegate.retiring()").await.concat(), ["{0}"]);
    client
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("nothing waits")
}

/// The tables of messages that a backend has locked while it waits for a table.
async fn locked_by_who_waits_for(database: &Database, table: &str) -> Vec<String> {
    let sql = format!(
        "select l.relation::regclass from pg_locks w join pg_locks l on l.pid = w.pid and l.granted
        where not w.granted and w.relation = '{table}'::regclass
            and l.relation::regclass::text ~ '^tidegate.message_[0-3]$'
        order by 1"
    );
    loop {
        let tables = database.rows(&sql).await.concat();
        if !tables.is_empty() {
            return tables;
        }
    }
}

/// A claim may take as long as it likes: it does not keep a segment that was read from being removed.
#[tokio::test]
async fn a_claim_that_goes_on_keeps_no_segment_that_was_read() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let relay = Relay::start(&store).await;
    store.publish(vec![new_message("d")]).await.unwrap();
    let retiring = retire(&database).await;
    // It learns that a segment is retiring, and reads nothing, for it does not know yet up to which id it may.
    relay.look().await;
    let blocker = database.client().await;
    run(&blocker, "begin; lock table tidegate.aside_sink").await;
    let removing = async {
        let locked = locked_by_who_waits_for(&database, "tidegate.aside_sink").await;
        assert_eq!(locked, ["tidegate.message_1", "tidegate.message_2", "tidegate.message_3"]);
        run(&retiring, "lock table only tidegate.message_0 in access exclusive mode nowait").await;
        run(&blocker, "commit").await;
    };
    let (claim, ()) = within(async { tokio::join!(relay.look(), removing) }).await;
    let found = claim.readings[0].messages.iter().map(|message| message.position.0);
    assert_eq!(found.collect::<Vec<_>>(), [4]);
}

/// Claims and settlements, also of what was set aside, need nothing that is locked while a segment is truncated.
#[tokio::test]
async fn nothing_waits_while_a_segment_is_truncated() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let relay = Relay::start(&store).await;
    store.publish(["d", "e"].map(new_message).to_vec()).await.unwrap();
    let copied = "insert into tidegate.aside (lane, id, topic, sink, state, attempts, reason, on_dead,
            due_at, payload, published_at)
        select tidegate.lane_of(m.key, m.id), m.id, m.topic, 's', 'retry', 1, '', 'skip', now(), m.payload,
            m.published_at
        from tidegate.message_0 m where m.id = 2";
    database.execute(copied).await;
    let retiring = retire(&database).await;
    relay.look().await;
    run(&retiring, "lock table only tidegate.message_0 in access exclusive mode nowait").await;
    let claim = within(relay.look()).await;
    assert_eq!(claim.due.iter().map(|message| message.position.0).collect::<Vec<_>>(), [2]);
    let again = |message: &Message| SetAside {
        lane: message.lane,
        position: message.position,
        topic: message.topic.clone(),
        key: message.key_hash(),
        sink: "s".to_owned(),
        aside: Aside::Behind,
    };
    let aside = claim.due.iter().chain(&claim.readings[0].messages).map(again).collect();
    let settlement = Settlement { aside, ..progress::settlement(&relay.lanes, 1, 5) };
    within(store.settle_messages(settlement)).await.unwrap();
    let aside = database.rows("select id from tidegate.aside order by id").await.concat();
    assert_eq!(aside, ["2", "4", "5"], "all are stored: in their segments, or as a copy");
}

/// What a relay learned from one claim may be over at the next.
#[tokio::test]
async fn a_segment_is_read_again_when_it_is_not_truncated_after_all() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let relay = Relay::start(&store).await;
    store.publish(vec![new_message("d")]).await.unwrap();
    let retiring = retire(&database).await;
    assert_eq!(relay.ids().await, [4]);
    // Ids up to the next one are known to be decided before the segment is left out once more.
    let late = "insert into tidegate.message_0 (id, topic, payload)
        select nextval('tidegate.message_id'), 't', ''";
    run(&retiring, "rollback").await;
    let writer = database.client().await;
    run(&writer, "begin").await;
    run(&writer, late).await;
    store.publish(vec![new_message("e")]).await.unwrap();
    assert_eq!(relay.looks(2).await, [0; 0], "the first of them may still commit");
    run(&writer, "commit").await;
    assert_eq!(relay.ids().await, [5, 6]);
}

/// The same, with nothing between what it learned and what it must not leave out.
#[tokio::test]
async fn a_claim_that_left_out_too_much_is_repeated() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let relay = Relay::start(&store).await;
    database.execute("select setval('tidegate.message_id', 5)").await;
    // It knows that ids up to 5 are decided, and that the first segment is retiring.
    relay.looks(2).await;
    relay.reader.borrow_mut().places.iter_mut().for_each(|place| place.after = 3);
    let retiring = retire(&database).await;
    store.claim_messages(relay.request()).await.unwrap();
    run(&retiring, "rollback").await;
    let late = "insert into tidegate.message_0 (id, topic, payload) values (4, 't', '')";
    database.execute(late).await;
    let before = store.statements();
    let claim = relay.look().await;
    assert_eq!(store.statements() - before, 2, "once more, with all segments");
    assert_eq!(claim.readings[0].messages.iter().map(|it| it.position.0).collect::<Vec<_>>(), [4]);
}

/// Whoever wants to publish into a segment that is retiring waits, and gets its ids afterwards.
#[tokio::test]
async fn nobody_publishes_into_a_segment_that_is_retiring() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let relay = Relay::start(&store).await;
    let retiring = retire(&database).await;
    relay.look().await;
    let late = database.client().await;
    let publishing = run(
        &late,
        "insert into tidegate.message_0 (id, topic, payload)
        select nextval('tidegate.message_id'), 't', ''",
    );
    let ending = async {
        let waits = "select count(*) from pg_locks l
            where l.relation = 'tidegate.message_0'::regclass and not l.granted";
        while database.rows(waits).await.concat() == ["0"] {}
        store.publish(vec![new_message("d")]).await.unwrap();
        assert_eq!(relay.ids().await, [4], "it holds nothing back, for it has no id");
        run(&retiring, "truncate tidegate.message_0; commit").await;
    };
    within(async { tokio::join!(publishing, ending) }).await;
    assert_eq!(relay.ids().await, [5]);
}

/// Claims that follow each other without a pause, each as long as sending megabytes takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn segments_are_removed_beside_claims_without_a_pause() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let payload = format!("\"{}\"", "x".repeat(100_000)).into_bytes();
    let large = NewMessage { payload, ..new_message("d") };
    for _ in 0..4 {
        store.publish(vec![large.clone(); 20]).await.unwrap();
    }
    let request = Relay::start(&store).await.request();
    let request = ClaimRequest { most_bytes: 8 << 20, ..request };
    let ended = Arc::new(AtomicBool::new(false));
    let claimers = (0..4).map(|_| async {
        let other = database.connect().await;
        let mut largest = 0;
        while !ended.load(Ordering::Relaxed) || largest == 0 {
            let claim = other.claim_messages(request.clone()).await.unwrap();
            largest = largest.max(claim.readings[0].messages.len());
        }
        largest
    });
    let removing = async {
        let sealed = store.seal(Duration::ZERO).await.unwrap().expect("it is closed");
        let mut tries = 0;
        let removed = loop {
            tries += 1;
            match store.discard(sealed).await {
                Err(error) if error.is_passing() && tries < 5 => {}
                answer => break answer,
            }
        };
        ended.store(true, Ordering::Relaxed);
        removed.unwrap()
    };
    let (removed, claims) = tokio::join!(removing, join_all(claimers));
    assert_eq!((removed, claims), (3, vec![80; 4]));
    assert_eq!(rows_of(&database, 0).await, "0");
}

/// Messages are published, some by transactions that stay open for a while, and read, and removed, all at once.
#[tokio::test]
async fn whatever_happens_at_once_nothing_is_removed_unread() {
    for seed in 0..4 {
        let database = Database::create(POSTGRES).await;
        let store = database.store().await;
        let other = database.connect().await;
        let relay = Relay::start(&other).await;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut open, mut published, mut read) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..80 {
            match random.random_range(0..6) {
                0 => {
                    let client = database.client().await;
                    run(&client, "begin").await;
                    published.push(publish(&client, "k").await);
                    open.push(client);
                }
                1 if !open.is_empty() => {
                    let client = open.swap_remove(random.random_range(0..open.len()));
                    run(&client, "commit").await;
                }
                2 => {
                    let ids = store.publish(vec![new_message("k")]).await.unwrap();
                    published.extend(ids.iter().filter_map(|id| id.as_number()));
                }
                3 => read.extend(relay.looks(random.random_range(0..3)).await),
                4 => settle_all(&database, &relay).await,
                _ => {
                    let looks = relay.looks(random.random_range(0..4));
                    let ((), found) = tokio::join!(remove(&store), looks);
                    read.extend(found);
                }
            }
        }
        for client in open {
            run(&client, "commit").await;
        }
        read.extend(relay.ids().await);
        published.sort_unstable();
        assert_eq!(read, published, "seed {seed}");
    }
}

/// Removes the oldest segment if it can be.
async fn remove(store: &Postgres) {
    if let Some(sealed) = store.seal(Duration::ZERO).await.unwrap() {
        let removed = store.discard(sealed).await;
        assert!(removed.as_ref().err().is_none_or(StoreError::is_passing), "{removed:?}");
    }
}

/// What was read is done.
async fn settle_all(database: &Database, relay: &Relay<'_>) {
    let after = relay.reader.borrow().places[0].after;
    let settle = format!("update tidegate.lane set cursor = {after}, settled_at = now()");
    database.execute(&settle).await;
}

/// Its locks are held while its commit waits for a standby.
#[tokio::test]
async fn truncating_waits_for_no_standby() {
    let database = Database::create(POSTGRES).await;
    let store = sent(&database).await;
    let sealed = store.seal(Duration::ZERO).await.unwrap().unwrap();
    let sql = format!(
        "begin; set local synchronous_commit = on; select tidegate.discard({}, 0);
        select current_setting('synchronous_commit'); commit",
        sealed.place
    );
    assert_eq!(database.rows(&sql).await.concat(), ["done", "local"]);
}

/// A role that is not told since when transactions of others are open sees it for itself.
#[tokio::test]
async fn who_holds_something_is_told_without_rights_to_statistics() {
    let database = Database::create(POSTGRES).await;
    let owner = sent(&database).await;
    let sealed = owner.seal(Duration::ZERO).await.unwrap().unwrap();
    let role = format!("relay_{}", database.url().path().trim_start_matches('/'));
    let rights = format!(
        "create role {role}; grant usage on schema tidegate to {role};
        grant all on all tables in schema tidegate to {role};
        grant all on all sequences in schema tidegate to {role}"
    );
    database.execute(&rights).await;
    let mut url = database.url();
    url.query_pairs_mut().append_pair("options", &format!("-crole={role}"));
    let store = Postgres::connect(url.as_str()).await.unwrap();
    let holder = database.client().await;
    run(&holder, "set application_name = 'a slow one'; begin").await;
    publish(&holder, "k").await;
    run(&holder, "lock table tidegate.message_0 in access share mode").await;
    let error = store.discard(sealed).await.unwrap_err().to_string();
    let named = store.outbox().await.unwrap().holder;
    run(&holder, "rollback").await;
    let afterwards = store.outbox().await.unwrap().holder;
    drop((store, owner));
    database.execute(&format!("drop owned by {role}; drop role {role}")).await;
    assert!(error.contains("a slow one"), "{error}");
    let named = named.expect("it is named").name;
    assert!(named.contains("a slow one") && named.contains("pg_read_all_stats"), "{named}");
    assert_eq!(afterwards, None);
}
