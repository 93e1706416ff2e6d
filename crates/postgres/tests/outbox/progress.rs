//! Progress is appended, and found whoever settled it.

use super::*;
use tidegate_core::outbox::{
    AuditLine, Before, Choice, Lag, LaneLease, OnDead, Origin, Pattern, Selection, Topics,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

const ALL: usize = 64;

fn share(relay: &str, held: Vec<LaneLease>, lease: Duration) -> Share {
    Share { relay: WorkerId(relay.to_owned()), epoch: epoch(), held, routes: Vec::new(), lease }
}

/// A store in which as many ids were drawn as these tests let lanes pass.
async fn store_with_ids(database: &Database) -> Postgres {
    let store = database.store().await;
    database.execute("select setval('tidegate.message_id', 1000)").await;
    store
}

/// All of these lanes are done up to `cursor`.
pub fn settlement(lanes: &[Gained], number: u64, cursor: i64) -> Settlement {
    let progress = |gained: &Gained| {
        let LaneLease { lane, fence } = gained.lease;
        Progress { lane, fence, cursor, lags: Vec::new(), before: None }
    };
    let lanes = lanes.iter().map(progress).collect();
    Settlement { epoch: epoch(), number, lanes, ..Settlement::default() }
}

/// The same, with a sink that is behind.
fn lagging(lanes: &[Gained], number: u64, cursor: i64, behind: i64) -> Settlement {
    let mut settlement = settlement(lanes, number, cursor);
    settlement.lanes.iter_mut().for_each(|progress| progress.lags = vec![lag(behind)]);
    settlement
}

fn lag(cursor: i64) -> Lag {
    let choice = |takes: &str| Choice { takes: Pattern(takes.to_owned()), unless: Vec::new() };
    Lag { sink: "slow".to_owned(), topics: Topics(vec![choice("slow.*")]), cursor }
}

fn leases(lanes: &[Gained]) -> Vec<LaneLease> {
    lanes.iter().map(|gained| gained.lease).collect()
}

fn give_back(relay: &str, lanes: &[Gained]) -> GiveBack {
    GiveBack { relay: WorkerId(relay.to_owned()), lanes: leases(lanes), ends: false }
}

fn cursors(lanes: &[Gained]) -> Vec<i64> {
    lanes.iter().map(|gained| gained.cursor).collect()
}

/// A snapshot that is open for long keeps all versions of rows: those that are looked up have one.
#[tokio::test]
async fn who_settles_and_says_that_it_lives_changes_no_row_that_is_looked_up() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let lanes = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
    let versions = "select lane, xmin, ctid from tidegate.lane order by lane";
    let before = database.rows(versions).await;
    for number in 1..=20 {
        let some = &lanes[..ALL / (1 + number as usize % 3)];
        let settled = store.settle_messages(settlement(some, number, number as i64)).await.unwrap();
        assert_eq!(settled.late, []);
        let shared = store.share_lanes(share("a", leases(&lanes), LEASE)).await.unwrap();
        assert_eq!((shared.gained.len(), shared.lost.len()), (0, 0));
    }
    assert_eq!(database.rows(versions).await, before);
    let alive = "select relay, expires_at > now() from tidegate.relay";
    assert_eq!(database.rows(alive).await, [["a", "t"]], "the one before is not needed");
    let rows = "select relay, number from tidegate.progress";
    assert_eq!(database.rows(rows).await, [["a", "20"]], "the one before is not needed");
    let earlier = store.settle_messages(settlement(&lanes, 19, 99)).await.unwrap();
    assert_eq!(earlier.late.len(), ALL);
    let found = "select min(cursor), max(cursor), count(*) from tidegate.lanes";
    assert_eq!(database.rows(found).await, [["18", "20", "64"]]);
}

/// Whoever takes a lane that is being settled gets it when that is done, and sees it.
#[tokio::test]
async fn what_is_settled_while_lanes_are_taken_is_not_missed() {
    let database = Database::create(POSTGRES).await;
    let strict = format!(
        "alter database {} set default_transaction_isolation = 'repeatable read'",
        database.url().path().trim_start_matches('/')
    );
    drop(store_with_ids(&database).await);
    for isolation in ["", &strict] {
        database.execute(if isolation.is_empty() { "select" } else { isolation }).await;
        let store = database.connect().await;
        let old = store.share_lanes(share("old", Vec::new(), Duration::ZERO)).await.unwrap();
        assert_eq!(old.gained.len(), ALL);
        let settling = database.client().await;
        let fences: Vec<i64> = old.gained[..10].iter().map(|it| it.lease.fence.0).collect();
        let lanes: Vec<i16> = old.gained[..10].iter().map(|it| it.lease.lane.0 as i16).collect();
        run(&settling, "begin").await;
        let sql = "select tidegate.advance($3, $1, $2, array_fill(70::bigint, array[10]), null, 1)";
        let moved: Vec<i16> =
            settling.query_one(sql, &[&lanes, &fences, &epoch().0]).await.unwrap().get(0);
        assert_eq!(moved, lanes);
        let new = store.share_lanes(share("new", Vec::new(), Duration::ZERO)).await.unwrap();
        assert_eq!(new.gained.len(), ALL - 10, "the others are being settled");
        run(&settling, "commit").await;
        let held: Vec<LaneLease> = new.gained.iter().map(|it| it.lease).collect();
        let rest = store.share_lanes(share("new", held, Duration::ZERO)).await.unwrap();
        assert_eq!(cursors(&rest.gained), [70; 10]);
        let late = store.settle_messages(settlement(&old.gained, 8, 80)).await.unwrap().late;
        assert_eq!(late.len(), ALL);
        let rows = "select relay, number from tidegate.progress";
        assert_eq!(database.rows(rows).await, [["new", "0"]], "lanes say how far they were");
        database.execute("update tidegate.lane set cursor = 0, relay = null").await;
        database.execute("delete from tidegate.progress").await;
        database.execute("delete from tidegate.relay").await;
    }
}

/// Lanes that go back and forth are where the last of their relays has left them.
#[tokio::test]
async fn progress_goes_with_the_lanes() {
    let database = Database::create(POSTGRES).await;
    let store = store_with_ids(&database).await;
    let a = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
    store.settle_messages(settlement(&a, 1, 10)).await.unwrap();
    store.give_back_lanes(give_back("a", &a[..ALL / 2])).await.unwrap();
    store.settle_messages(settlement(&a[ALL / 2..], 2, 20)).await.unwrap();
    let b = store.share_lanes(share("b", Vec::new(), LEASE)).await.unwrap().gained;
    assert_eq!(cursors(&b), [10; ALL / 2]);
    store.settle_messages(settlement(&b, 1, 30)).await.unwrap();
    let found = "select cursor, count(*) from tidegate.lanes group by 1 order by 1";
    assert_eq!(database.rows(found).await, [["20", "32"], ["30", "32"]]);
    database.execute("update tidegate.relay set expires_at = now() where relay = 'a'").await;
    let rest = store.share_lanes(share("b", leases(&b), LEASE)).await.unwrap().gained;
    assert_eq!(cursors(&rest), [20; ALL / 2]);
    let rows = "select relay, number from tidegate.progress";
    assert_eq!(database.rows(rows).await, [["b", "1"]]);
    assert_eq!(database.rows(found).await, [["20", "32"], ["30", "32"]]);
    let all = b.iter().chain(&rest).map(|it| it.lease).collect();
    let give_back = GiveBack { relay: WorkerId("b".to_owned()), lanes: all, ends: true };
    store.give_back_lanes(give_back).await.unwrap();
    assert_eq!(database.rows(rows).await.len(), 0, "whoever ends leaves nothing behind");
    assert_eq!(database.rows(found).await, [["20", "32"], ["30", "32"]]);
}

/// A sink that catches up for hours rewrites nothing either. What a relay said of a lane that it gave back counts
/// no longer when it has it again.
#[tokio::test]
async fn what_lags_goes_with_the_lanes() {
    let database = Database::create(POSTGRES).await;
    let store = store_with_ids(&database).await;
    let a = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
    let versions = "select lane, xmin, ctid from tidegate.lane order by lane";
    let before = database.rows(versions).await;
    for number in 1..=20 {
        store.settle_messages(lagging(&a, number, 50, number as i64)).await.unwrap();
    }
    assert_eq!(database.rows(versions).await, before);
    let found = "select distinct tidegate.read_to(cursor, state, 'slow.one'),
        tidegate.read_to(cursor, state, 'fast'), tidegate.all_read_to(cursor, state) from tidegate.lanes";
    assert_eq!(database.rows(found).await, [["20", "50", "20"]]);

    store.give_back_lanes(give_back("a", &a)).await.unwrap();
    assert_eq!(database.rows(found).await, [["20", "50", "20"]]);
    database.execute("delete from tidegate.relay").await;
    let b = store.share_lanes(share("b", Vec::new(), LEASE)).await.unwrap().gained;
    assert!(b.iter().all(|gained| gained.lags == [lag(20)]), "{b:?}");
    store.settle_messages(settlement(&b, 1, 50)).await.unwrap();
    assert_eq!(database.rows(found).await, [["50", "50", "50"]], "it has caught up");
    store.give_back_lanes(give_back("b", &b)).await.unwrap();

    database.execute("delete from tidegate.relay").await;
    let a = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
    assert!(a.iter().all(|gained| gained.lags.is_empty()), "{a:?}");
    assert_eq!(database.rows(found).await, [["50", "50", "50"]]);
}

/// The same without an end: the rows about its former lease are still there.
#[tokio::test]
async fn what_lagged_under_an_earlier_fence_does_not_count() {
    let database = Database::create(POSTGRES).await;
    let store = store_with_ids(&database).await;
    let a = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
    store.settle_messages(lagging(&a, 1, 50, 20)).await.unwrap();
    let (kept, given) = a.split_at(ALL / 2);
    store.give_back_lanes(give_back("a", given)).await.unwrap();
    let b = store.share_lanes(share("b", Vec::new(), LEASE)).await.unwrap().gained;
    store.settle_messages(settlement(&b, 1, 60)).await.unwrap();
    let mut end = give_back("b", &b);
    end.ends = true;
    store.give_back_lanes(end).await.unwrap();
    let again = store.share_lanes(share("a", leases(kept), LEASE)).await.unwrap().gained;
    let is_far = |gained: &Gained| gained.cursor == 60 && gained.lags.is_empty();
    assert!(again.len() == ALL / 2 && again.iter().all(is_far), "{again:?}");
    let found = "select tidegate.all_read_to(cursor, state), count(*) from tidegate.lanes
        group by 1 order by 1";
    assert_eq!(database.rows(found).await, [["20", "32"], ["60", "32"]]);
}

/// A relay that says in time that it lives keeps its lanes, whoever was about to take them.
#[tokio::test]
async fn lanes_of_a_relay_that_is_saying_that_it_lives_are_left_alone() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let a = store.share_lanes(share("a", Vec::new(), Duration::ZERO)).await.unwrap().gained;
    let client = database.client().await;
    let lives = "insert into tidegate.relay values ('a', now() + interval '1 minute')";
    run(&client, "begin; select from tidegate.lane order by lane for update").await;
    run(&client, lives).await;
    let b = store.share_lanes(share("b", Vec::new(), LEASE)).await.unwrap();
    assert_eq!(b.gained.len(), 0, "they are being kept");
    run(&client, "commit").await;
    let b = store.share_lanes(share("b", Vec::new(), LEASE)).await.unwrap();
    assert_eq!((b.gained.len(), b.relays), (0, 2), "they were kept");
    let shared = store.share_lanes(share("a", leases(&a), LEASE)).await.unwrap();
    assert_eq!((shared.lost.len(), shared.surplus), (0, ALL / 2));
}

/// A store of an earlier build: how far its lanes are is kept, and they are free.
#[tokio::test]
async fn progress_is_upgraded() {
    let database = Database::create(POSTGRES).await;
    for migration in BEFORE_SEGMENTS.into_iter().chain(BEFORE_LEASES) {
        database.execute(migration).await;
    }
    let before = Before { cursor: 30, lags: vec![lag(10)], before: None };
    let [topics, before_text] =
        [serde_json::to_string(&lag(0).topics).unwrap(), serde_json::to_string(&before).unwrap()];
    database
        .execute(&format!(
            "insert into tidegate.relay values ('old', now() + interval '1 hour');
            update tidegate.lane set relay = 'old', fence = 7, cursor = 5, expires_at = now() + interval '1 hour';
            insert into tidegate.progress values ('old', 3, array_fill(40::bigint, array[64]));
            insert into tidegate.lag select n, 'slow', '{topics}', '{}', 20 from generate_series(0, 31) n;
            update tidegate.lane set before = '{before_text}' where lane < 8;
            select setval('tidegate.message_id', 40)",
            lag(0).topics.regex()
        ))
        .await;
    let store = database.connect().await;
    assert_eq!(store.migrate().await.unwrap()[..2], ["0010_leases", "0011_publish"]);
    let gained = store.share_lanes(share("new", Vec::new(), LEASE)).await.unwrap().gained;
    assert_eq!(cursors(&gained), [40; ALL]);
    for gained in gained {
        let n = gained.lease.lane.0;
        assert_eq!(gained.lags, if n < 32 { vec![lag(20)] } else { Vec::new() }, "lane {n}");
        assert_eq!(gained.before, (n < 8).then(|| before.clone()), "lane {n}");
    }
}

/// A copy of an earlier settlement that waited while a later one was settled is late, however little it can see.
#[tokio::test]
async fn a_copy_that_waited_is_late_under_any_isolation() {
    for isolation in ["read committed", "repeatable read"] {
        let database = Database::create(POSTGRES).await;
        drop(database.store().await);
        let name = database.url().path().trim_start_matches('/').to_owned();
        let set = format!("set default_transaction_isolation = '{isolation}'");
        database.execute(&format!("alter database {name} {set}")).await;
        let store = database.connect().await;
        let lanes = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
        store.settle_messages(settlement(&lanes, 1, 50)).await.unwrap();
        let later = database.client().await;
        run(&later, "begin").await;
        let sql =
            "select tidegate.advance($1, array_agg(lane order by lane), array_agg(fence order by lane),
            array_fill(60::bigint, array[64]), null, 2) from tidegate.lane";
        later.query_one(sql, &[&epoch().0]).await.unwrap();
        let waiting = store.settle_messages(settlement(&lanes, 1, 50));
        let committing = async {
            let waits = "select from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock'";
            while database.rows(waits).await.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            run(&later, "commit").await;
        };
        let (settled, ()) = tokio::join!(waiting, committing);
        assert_eq!(settled.unwrap().late.len(), ALL, "{isolation}");
        let found = "select relay, number from tidegate.progress";
        assert_eq!(database.rows(found).await, [["a", "2"]], "{isolation}");
    }
}

/// A relay that stands still while it takes lanes has them until its lease ends, and no longer.
#[tokio::test]
async fn whoever_hears_no_answer_leaves_no_transaction_open() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let deaf = Postgres::connect(deaf_to_take(&database).await.as_str()).await.unwrap();
    let taking = tokio::spawn(async move {
        let _ = deaf.share_lanes(share("deaf", Vec::new(), Duration::ZERO)).await;
    });
    let taken = async {
        let lanes = "select from tidegate.lane where relay = 'deaf'";
        while database.rows(lanes).await.len() < ALL {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), taken).await.expect("what it took is committed");
    let other = store.share_lanes(share("other", Vec::new(), LEASE)).await.unwrap();
    assert_eq!(other.gained.len(), ALL);
    taking.abort();
}

/// Another address of the database. Once lanes were taken through it, no answer comes back.
async fn deaf_to_take(database: &Database) -> Url {
    let mut url = database.url();
    let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(pass_on(client, server));
        }
    });
    url
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut is_deaf = false;
    loop {
        let (from_client, read) = tokio::select! {
            read = client.read(&mut asked) => (true, read),
            read = server.read(&mut answered) => (false, read),
        };
        let Some(read) = read.ok().filter(|read| *read > 0) else { return };
        if from_client {
            is_deaf |= String::from_utf8_lossy(&asked[..read]).contains("tidegate.take");
            server.write_all(&asked[..read]).await.unwrap();
        } else if !is_deaf {
            client.write_all(&answered[..read]).await.unwrap();
        }
    }
}

/// A copy of a call that arrives late frees nothing of which the relay has learned since, and forgets no progress.
#[tokio::test]
async fn taking_lanes_late_changes_nothing_that_is_known() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let lost = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
    let old = |lane: &Gained| (lane.lease.lane.0 as i16, lane.lease.fence.0);
    let (lanes, fences): (Vec<i16>, Vec<i64>) = lost.iter().map(old).unzip();
    let known = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
    store.settle_messages(settlement(&known, 1, 50)).await.unwrap();
    let client = database.client().await;
    let sql = "select * from tidegate.take('a', 64, $1, $2)";
    assert!(client.query(sql, &[&lanes, &fences]).await.unwrap().is_empty());
    let shared = store.share_lanes(share("a", leases(&known), LEASE)).await.unwrap();
    assert_eq!((shared.lost.len(), shared.gained.len()), (0, 0));
    let found = "select distinct cursor from tidegate.lanes";
    assert_eq!(database.rows(found).await, [["50"]]);
}

/// A database may publish all its changes: then rows must say what they are known by to be deleted.
#[tokio::test]
async fn a_publication_of_all_tables_is_in_nobodys_way() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    database.execute("create publication everything for all tables").await;
    let relay = Relay::start(&store).await;
    store.publish(vec![new_message("k")]).await.unwrap();
    let read = relay.read().await;
    let mut settling = settlement(&relay.lanes, 1, read[0].position.0);
    let then = OnDead::Skip;
    let aside = Aside::Dead { attempts: 1, reason: "bad luck".to_owned(), then };
    let Message { lane, position, topic, .. } = read[0].clone();
    let (key, sink) = (read[0].key_hash(), "a sink".to_owned());
    settling.aside = vec![SetAside { lane, position, topic, key, sink, aside }];
    store.settle_messages(settling).await.unwrap();
    store.settle_messages(settlement(&relay.lanes, 2, read[0].position.0)).await.unwrap();
    store.share_lanes(share("a relay", leases(&relay.lanes), LEASE)).await.unwrap();
    let by = AuditLine { who: "tester".to_owned(), why: "so".to_owned(), ..AuditLine::default() };
    assert_eq!(store.drop_dead(Selection::default(), &by).await.unwrap(), 1);
    store.give_back_lanes(give_back("a relay", &relay.lanes)).await.unwrap();
}

/// The first settlement of a relay has none before it that could be locked.
#[tokio::test]
async fn a_late_copy_of_the_first_settlement_is_late_under_any_isolation() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let lanes = store.share_lanes(share("a", Vec::new(), LEASE)).await.unwrap().gained;
    let late = database.client().await;
    run(&late, "begin isolation level repeatable read; select from tidegate.lane").await;
    for number in 1..=2 {
        store.settle_messages(settlement(&lanes, number, number as i64 * 10)).await.unwrap();
    }
    let sql =
        "select tidegate.advance(array_agg(lane order by lane), array_agg(fence order by lane),
        array_fill(10::bigint, array[64]), null, 1) from tidegate.lane";
    let refused = late.query_one(sql, &[]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "40001", "it is sent again, and sees the later one");
}

/// What never comes is no reason to end.
#[tokio::test]
async fn a_message_for_the_end_of_time_is_read_and_waits() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    for time in ["infinity", "-infinity", "294276-12-31"] {
        database.execute(&format!("select tidegate.publish('t', 'k', '1', null, '{time}')")).await;
    }
    let due: Vec<bool> = relay
        .read()
        .await
        .iter()
        .map(|message| matches!(message.origin, Origin::Lane { due_in: None }))
        .collect();
    assert_eq!(due, [false, true, false]);
}
