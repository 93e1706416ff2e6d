//! Removing what was sent while others use the same tables.

use super::*;
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
        let (answer, (longest, waited)) = tokio::join!(discarding, probing);
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
    assert_eq!(relay.ids().await, [1, late[0].0, 3]);
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
