//! What is particular to the outbox on PostgreSQL: ids are drawn in no order of commits, and many
//! machines publish and read at once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod look;
mod progress;
mod publish;
mod restarted;
mod retention;
mod settle;
mod steer;
#[allow(dead_code, reason = "the other tests use more of it")]
#[path = "../support/mod.rs"]
mod support;
mod take_over;

use futures_util::future::join_all;
use std::{cell::RefCell, time::Duration};
use support::{Database, POSTGRES, epoch};
use tidegate_core::{
    InspectOutbox, Kind, Message, Migrate, NewMessage, Outbox, Publish, Retain, StoreError,
    WorkerId,
    outbox::{
        Aside, Claim, ClaimRequest, Epoch, Gained, GiveBack, Place, Progress, Reader, SetAside,
        Settlement, Share, Shared,
    },
};
use tidegate_postgres::Postgres;
use tokio_postgres::Client;

const LEASE: Duration = Duration::from_secs(60);

/// The migrations up to that which made messages rows of plain tables.
const BEFORE_SEGMENTS: [&str; 7] = [
    include_str!("../../src/sql/migrations/0001_batches.sql"),
    include_str!("../../src/sql/migrations/0002_pace.sql"),
    include_str!("../../src/sql/migrations/0003_loads.sql"),
    include_str!("../../src/sql/migrations/0004_outbox.sql"),
    include_str!("../../src/sql/migrations/0005_adopted.sql"),
    include_str!("../../src/sql/migrations/0006_relay.sql"),
    include_str!("../../src/sql/migrations/0007_durable.sql"),
];

/// Those up to that which gave relays their lanes for as long as they live.
const BEFORE_LEASES: [&str; 2] = [
    include_str!("../../src/sql/migrations/0008_segments.sql"),
    include_str!("../../src/sql/migrations/0009_progress.sql"),
];

fn new_message(key: &str) -> NewMessage {
    NewMessage {
        topic: "t".to_owned(),
        key: Some(key.to_owned()),
        payload: b"{}".to_vec(),
        ..NewMessage::default()
    }
}

/// A relay with all lanes, which goes on from where it has read to.
struct Relay<'a> {
    store: &'a Postgres,
    epoch: Epoch,
    lanes: Vec<Gained>,
    reader: RefCell<Reader>,
}

impl<'a> Relay<'a> {
    async fn start(store: &'a Postgres) -> Self {
        let relay = WorkerId("a relay".to_owned());
        let (epoch, held, routes) = Default::default();
        let share = Share { relay, epoch, held, routes, lease: LEASE };
        let shared = store.share_lanes(share).await.unwrap();
        let (epoch, lanes) = (shared.epoch, shared.gained);
        let place = |gained: &Gained| Place { lane: gained.lease.lane, after: gained.cursor };
        let places = lanes.iter().map(place).collect();
        let reader = RefCell::new(Reader { places, most: 1_000, ..Reader::default() });
        Self { store, epoch, lanes, reader }
    }

    fn request(&self) -> ClaimRequest {
        ClaimRequest {
            epoch: self.epoch.clone(),
            readers: vec![self.reader.borrow().clone()],
            lanes: self.lanes.iter().map(|gained| gained.lease.lane).collect(),
            most_due: 1_000,
            most_bytes: 1 << 20,
            ..ClaimRequest::default()
        }
    }

    /// One look, and where it has read to.
    async fn look(&self) -> Claim {
        let claim = self.store.claim_messages(self.request()).await.unwrap();
        let read_to = claim.readings[0].read_to;
        let mut reader = self.reader.borrow_mut();
        reader.places.iter_mut().for_each(|place| place.after = place.after.max(read_to));
        claim
    }

    /// The ids that some looks find.
    async fn looks(&self, many: usize) -> Vec<i64> {
        let mut found = Vec::new();
        for _ in 0..many {
            found.extend(
                self.look().await.readings[0].messages.iter().map(|message| message.position.0),
            );
        }
        found
    }

    /// Looks until nothing is held back and nothing more is there.
    async fn read(&self) -> Vec<Message> {
        let mut found = Vec::new();
        loop {
            let mut claim = self.look().await;
            found.append(&mut claim.readings[0].messages);
            if !claim.held_back && !claim.readings[0].more {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn ids(&self) -> Vec<i64> {
        self.read().await.iter().map(|message| message.position.0).collect()
    }
}

async fn publish(client: &Client, key: &str) -> i64 {
    let sql = "select tidegate.publish('t', $1, '{}')";
    client.query_one(sql, &[&key]).await.unwrap().get(0)
}

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn nothing_is_read_beyond_a_message_that_may_still_commit() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    let (late, early) = (database.client().await, database.client().await);
    run(&late, "begin").await;
    let first = publish(&late, "k").await;
    assert_eq!(relay.looks(5).await, [0; 0], "it is open, and the youngest of all");
    let second = publish(&early, "k").await;
    assert!(first < second);
    assert_eq!(relay.looks(10).await, [0; 0], "the first may still commit");
    assert!(relay.look().await.held_back);
    run(&late, "commit").await;
    assert_eq!(relay.ids().await, [first, second]);
}

/// Numbers of transactions are not an order either: one that is older publishes after a younger one has
/// committed, while an even older one is open that publishes nothing and holds nothing back.
#[tokio::test]
async fn an_old_transaction_publishes_after_a_younger_one_committed() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    let clients = join_all((0..3).map(|_| database.client())).await;
    let [oldest, old, young] = &clients[..] else { panic!("there are three") };
    run(oldest, "begin; select pg_current_xact_id()").await;
    run(old, "begin; select pg_current_xact_id()").await;
    let mut published = vec![publish(young, "k").await];
    assert_eq!(relay.looks(5).await, published, "nobody who is open has published");
    published = vec![publish(old, "k").await];
    assert_eq!(relay.looks(5).await, [0; 0]);
    published.push(publish(young, "k").await);
    assert_eq!(relay.looks(5).await, [0; 0], "the old one may still commit, and comes first");
    run(old, "commit").await;
    assert_eq!(relay.looks(5).await, published);
    run(oldest, "rollback").await;
}

/// Whoever writes elsewhere, in another database or in another table, holds nothing back for however long.
#[tokio::test]
async fn only_transactions_that_publish_hold_messages_back() {
    let (database, elsewhere) =
        (Database::create(POSTGRES).await, Database::create(POSTGRES).await);
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    let (far, near, publisher) =
        (elsewhere.client().await, database.client().await, database.client().await);
    run(&far, "begin; create table other (n int); insert into other values (1)").await;
    run(&near, "begin; create table own (n int); insert into own values (1)").await;
    run(&near, "select * from tidegate.message").await;
    let ids = [publish(&publisher, "k").await, publish(&publisher, "l").await];
    assert_eq!(relay.ids().await, ids);
    assert_eq!(store.outbox().await.unwrap().holder, None, "it does not hold anything back");
    let own = publish(&near, "m").await;
    let later = publish(&publisher, "k").await;
    assert_eq!(relay.looks(5).await, [0; 0]);
    run(&near, "commit").await;
    assert_eq!(relay.ids().await, [own, later]);
    run(&far, "rollback").await;
}

/// Transactions that publish in savepoints, some of which are rolled back, and prepared ones.
#[tokio::test]
async fn savepoints_and_prepared_transactions_are_waited_for() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    let (late, early) = (database.client().await, database.client().await);
    run(&late, "begin; savepoint a").await;
    let gone = publish(&late, "k").await;
    run(&late, "rollback to a").await;
    let other = publish(&early, "l").await;
    assert_eq!(relay.ids().await, [other], "what was rolled back is decided");
    run(&late, "savepoint b").await;
    let kept = publish(&late, "k").await;
    run(&late, "release b").await;
    let next = publish(&early, "l").await;
    assert_eq!(relay.looks(5).await, [0; 0]);
    run(&late, "commit").await;
    assert_eq!(relay.ids().await, [kept, next]);
    assert!(gone < other && other < kept);
}

#[tokio::test]
async fn what_was_rolled_back_holds_nothing_up() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    let client = database.client().await;
    let mut published = Vec::new();
    for ends in ["rollback", "commit", "rollback", "rollback", "commit"] {
        run(&client, "begin").await;
        let mut ids = vec![publish(&client, "k").await, publish(&client, "l").await];
        run(&client, ends).await;
        if ends == "commit" {
            published.append(&mut ids);
        }
    }
    assert_eq!(relay.ids().await, published);
    assert!(published[3] > 8, "there are gaps: {published:?}");
}

/// Transactions of all lengths, some of which are rolled back, while somebody reads.
#[tokio::test]
async fn readers_lose_nothing_while_many_publish() {
    const CLIENTS: u64 = 6;
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    let publisher = async |n: u64| {
        let client = database.client().await;
        let mut committed = Vec::new();
        for round in 0..40 {
            run(&client, "begin").await;
            let mut ids = Vec::new();
            for _ in 0..=(n + round) % 3 {
                ids.push(publish(&client, &format!("key {n}")).await);
                tokio::time::sleep(Duration::from_micros((n * 7 + round * 13) % 11 * 300)).await;
            }
            let commits = !(n + round).is_multiple_of(5);
            run(&client, if commits { "commit" } else { "rollback" }).await;
            committed.extend(if commits { ids } else { Vec::new() });
        }
        committed
    };
    let publishing = join_all((0..CLIENTS).map(publisher));
    tokio::pin!(publishing);
    let mut found = Vec::new();
    let committed = loop {
        tokio::select! {
            biased;
            committed = &mut publishing => break committed,
            some = relay.looks(1) => found.extend(some),
        }
    };
    found.extend(relay.ids().await);
    let mut expected: Vec<i64> = committed.concat();
    expected.sort_unstable();
    assert_eq!(found, expected, "each once, in order");
}

#[tokio::test]
async fn who_holds_messages_back_is_told() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let holder = database.client().await;
    run(&holder, "set application_name = 'a slow one'; begin").await;
    publish(&holder, "k").await;
    let told = async {
        loop {
            match store.outbox().await.unwrap().holder {
                Some(holder) if holder.name.contains("a slow one") => break holder,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let holder = tokio::time::timeout(Duration::from_secs(30), told).await.unwrap();
    assert!(holder.age >= Duration::from_secs(1), "{holder:?}");
}

/// It may only read, and holds no message back.
#[tokio::test]
async fn who_has_the_oldest_snapshot_is_told() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let reader = database.client().await;
    let open = "set application_name = 'a backup';
        begin isolation level repeatable read; select from tidegate.lane";
    run(&reader, open).await;
    let told = async {
        loop {
            let status = store.outbox().await.unwrap();
            match status.oldest_snapshot {
                Some(oldest) if oldest.name.contains("a backup") => break,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), told).await.unwrap();
    let other = store.outbox().await.unwrap().holder;
    assert!(other.is_none_or(|holder| !holder.name.contains("a backup")));
}

#[tokio::test]
async fn claims_and_settlements_are_one_statement_each() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    relay.look().await;
    for many in [1, 500] {
        let before = store.statements();
        store.publish(vec![new_message("k"); many]).await.unwrap();
        assert_eq!(store.statements() - before, 1);
        let messages = relay.read().await;
        assert_eq!(messages.len(), many);
        let before = store.statements();
        relay.look().await;
        assert_eq!(store.statements() - before, 1);
        let cursor = messages[many - 1].position.0;
        let settle = async |settlement: Settlement| {
            let progress = |gained: &Gained| Progress {
                lane: gained.lease.lane,
                fence: gained.lease.fence,
                cursor,
                lags: Vec::new(),
                before: None,
            };
            let lanes = relay.lanes.iter().map(progress).collect();
            let before = store.statements();
            let settlement = Settlement { epoch: epoch(), lanes, ..settlement };
            store.settle_messages(settlement).await.unwrap();
            assert_eq!(store.statements() - before, 1);
        };
        let aside = |message: &Message| SetAside {
            lane: message.lane,
            position: message.position,
            topic: message.topic.clone(),
            key: message.key_hash(),
            sink: "a sink".to_owned(),
            aside: Aside::Behind,
        };
        let aside = messages.iter().map(aside).collect();
        settle(Settlement { aside, ..Settlement::default() }).await;
        let before = store.statements();
        let due = relay.look().await.due;
        assert_eq!((store.statements() - before, due.len()), (1, many.min(101)));
        let done = messages.iter().map(|message| (message.lane, message.position)).collect();
        settle(Settlement { done, ..Settlement::default() }).await;
    }
}

/// The segment stands in the text of the functions: sessions that have used the one before notice.
#[tokio::test]
async fn segments_turn_while_applications_publish() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    let mut client = database.client().await;
    let count =
        "select count(*) from tidegate.message_0 union all select count(*) from tidegate.message_1";
    let mut published = vec![publish(&client, "a").await];
    let transaction = client.transaction().await.unwrap();
    let prepared = transaction.prepare("select tidegate.publish('t', 'b', '{}')").await.unwrap();
    published.push(transaction.query_one(&prepared, &[]).await.unwrap().get(0));
    assert!(store.seal(Duration::ZERO).await.unwrap().is_none(), "nothing was read");
    published.push(transaction.query_one(&prepared, &[]).await.unwrap().get(0));
    transaction.commit().await.unwrap();
    let ids = store.publish(vec![new_message("c")]).await.unwrap();
    published.extend(ids.iter().filter_map(|id| id.as_number()));
    published.push(publish(&client, "d").await);
    let counts = database.rows(count).await.concat();
    assert!(counts == ["2", "3"] || counts == ["3", "2"], "it has turned: {counts:?}");
    assert_eq!(relay.ids().await, published);
}

#[tokio::test]
async fn a_relay_need_not_own_the_functions_that_it_changes() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let client = database.client().await;
    run(&client, "grant usage on schema tidegate to pg_monitor").await;
    run(&client, "grant select, update on tidegate.outbox to pg_monitor").await;
    run(&client, "begin; set local role pg_monitor").await;
    run(&client, "update tidegate.outbox set most_outstanding = 1; commit").await;
    publish(&client, "a").await;
    let refused = store.publish(vec![new_message("a")]).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Full);
}

#[tokio::test]
async fn a_store_with_messages_in_partitions_is_upgraded() {
    let database = Database::create(POSTGRES).await;
    for migration in BEFORE_SEGMENTS {
        database.execute(migration).await;
    }
    let client = database.client().await;
    let mut published = vec![publish(&client, "a").await, publish(&client, "b").await];
    run(&client, "update tidegate.outbox set segment = 1").await;
    published.push(publish(&client, "a").await);
    let name = database.url().path().trim_start_matches('/').to_owned();
    let strict = "set default_transaction_isolation = 'repeatable read'";
    database.execute(&format!("alter database {name} {strict}")).await;
    database.execute("grant insert on tidegate.message to pg_monitor").await;
    // One that is open when it begins must end before, and what it published is kept.
    run(&client, "begin; update tidegate.outbox set most_outstanding = null").await;
    published.push(publish(&client, "a").await);
    run(&client, "update tidegate.outbox set most_outstanding = 4").await;
    let store = database.connect().await;
    let migrating = async { store.migrate().await.unwrap() };
    let committing = async {
        let waits = "select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'";
        while database.rows(waits).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        run(&client, "commit").await;
    };
    let (applied, ()) = tokio::join!(migrating, committing);
    assert_eq!(applied[..4], ["0008_segments", "0009_progress", "0010_leases", "0011_publish"]);
    let may = "select has_table_privilege('pg_monitor', 'tidegate.message_3', 'insert')";
    assert_eq!(database.rows(may).await.concat(), ["t"], "who could publish still can");
    let refused = client.query("select tidegate.publish('t', 'k', '{}')", &[]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "TG429", "the limit is kept");
    store.limit_outstanding(None).await.unwrap();
    published.push(publish(&client, "a").await);
    let segments =
        "select tableoid::regclass, count(*) from tidegate.message group by 1 order by 1";
    let found = database.rows(segments).await.concat();
    assert_eq!(found, ["tidegate.message_0", "2", "tidegate.message_1", "3"]);
    assert_eq!(Relay::start(&store).await.ids().await, published);
}
