//! What is particular to PostgreSQL. What every store must do is in the conformance suite.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use futures_util::future::{join_all, try_join_all};
use serde_json::json;
use std::time::Duration;
use support::{Database, PGBOUNCER, POSTGRES};
use tidegate_core::{
    Aggregates, Batch, BatchId, BatchState, Class, Inspect, Items, Keep, Kind, Lease, Migrate,
    RetryPolicy, Snapshot, Source, Submit, WorkerId,
    claim::{Claim, ClaimRequest, Length, Lengths},
    inspect::BatchQuery,
    migrate::Schema,
    page::PageBuilder,
    settle::{AccumulatorId, Failed, Part, Progress, Settled, Settlement, Total},
    source::Renewal,
    submit::NewBatch,
};
use tidegate_postgres::Postgres;

const LEASE: Duration = Duration::from_secs(60);

fn new_batch(runs: u64) -> NewBatch {
    NewBatch {
        workload: "noop".to_owned(),
        snapshot: Snapshot::freeze(&json!({"players": 3})),
        seed: u64::MAX,
        runs,
        keep: Keep::All,
        retry: RetryPolicy::default(),
        timeout: Some(Duration::from_secs(7)),
    }
}

fn request(slots: usize, length: u64) -> ClaimRequest {
    let unknown = Length { most: length, least: length };
    ClaimRequest {
        worker: WorkerId("tester".to_owned()),
        slots,
        lengths: Lengths { unknown, known: Vec::new() },
        workloads: vec!["noop".to_owned()],
        only: None,
        lease: LEASE,
        known: Vec::new(),
    }
}

/// All that is left of a lease, settled with results `{"run": i}`; the runs that `fails` names have
/// failed and are due at once.
fn part(lease: &Lease, fails: impl Fn(u64) -> bool) -> Part {
    let mut page = PageBuilder::default();
    let mut failed = Vec::new();
    for run in (0..lease.items.len()).map(|n| lease.items.nth(n)) {
        match fails(run.index) {
            true => failed.push(Failed {
                index: run.index,
                attempts: run.attempts + 1,
                reason: "no luck".to_owned(),
                delay: Some(Duration::ZERO),
            }),
            false => page.push(run.index, format!("{{\"run\": {}}}", run.index).as_bytes()),
        }
    }
    let progress = Progress::of(&lease.items, 0, lease.items.len());
    Part { batch: lease.batch, fence: lease.fence, progress, page: page.build(), failed }
}

fn total(batch: BatchId, accumulator: i64, sequence: i64, runs: u64) -> Total {
    let body = Aggregates { runs, ..Aggregates::default() }.encode();
    Total { batch, accumulator: AccumulatorId(accumulator), before: sequence - 1, sequence, body }
}

fn settlement(parts: Vec<Part>, totals: Vec<Total>) -> Settlement {
    Settlement { parts, totals, lease: LEASE }
}

async fn statements<T>(store: &Postgres, call: impl Future<Output = T>) -> (u64, T) {
    let before = store.statements();
    let answer = call.await;
    (store.statements() - before, answer)
}

#[tokio::test]
async fn each_call_of_the_hot_path_is_one_statement() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let (count, batch) = statements(&store, store.submit(new_batch(1_000_000))).await;
    assert_eq!(count, 1);
    let batch = batch.unwrap().id;

    let (count, claim) = statements(&store, store.claim(request(8, 1_000))).await;
    assert_eq!(count, 1);
    let leases = claim.unwrap().leases;
    assert_eq!(leases.len(), 8);

    let parts: Vec<Part> = leases[..4].iter().map(|lease| part(lease, |i| i % 100 == 0)).collect();
    let settlement = settlement(parts, vec![total(batch, 7, 1, 3_960)]);
    let (count, settled) = statements(&store, store.settle(settlement)).await;
    assert_eq!((count, settled.unwrap()), (1, Settled::Applied));

    let renewal = Renewal { leases: leases[4..].to_vec(), lease: LEASE };
    let (count, lost) = statements(&store, store.renew(renewal)).await;
    assert_eq!((count, lost.unwrap().len()), (1, 0));

    let (count, given) = statements(&store, store.give_back(leases[4..].to_vec())).await;
    assert!(count == 1 && given.is_ok());
}

#[tokio::test]
async fn a_claim_returns_all_that_is_needed_to_act() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let first = store.submit(new_batch(100)).await.unwrap();
    let second = store.submit(new_batch(100)).await.unwrap();

    let claim = store.claim(request(4, 10)).await.unwrap();
    assert_eq!(claim.batches, [first.clone(), second.clone()]);
    assert_eq!(claim.snapshots, [new_batch(1).snapshot]);
    assert_eq!((claim.open, claim.settled.len(), claim.next_due), (2, 0, Some(LEASE)));

    let known = ClaimRequest { known: vec![first.snapshot], ..request(4, 10) };
    assert!(store.claim(known).await.unwrap().snapshots.is_empty());
}

#[tokio::test]
async fn concurrent_claims_never_overlap_and_leave_nothing_out() {
    claim_from_all_sides(POSTGRES).await;
}

#[tokio::test]
async fn concurrent_claims_through_a_pooler_never_overlap_and_leave_nothing_out() {
    claim_from_all_sides(PGBOUNCER).await;
}

/// Sixteen workers with connections of their own run two batches to their end; every tenth run fails
/// the first time, and every seventh lease is given back instead of being worked on.
async fn claim_from_all_sides(variable: &str) {
    const RUNS: u64 = 20_000;
    let database = Database::create(variable).await;
    let store = database.store().await;
    let big = store.submit(new_batch(RUNS)).await.unwrap();
    let small = store.submit(new_batch(RUNS / 10)).await.unwrap();

    let workers = (1..=16).map(|number| work_until_done(&database, number));
    let finalized: usize = join_all(workers).await.into_iter().sum();
    assert_eq!(finalized, 2, "each batch is closed once");

    for batch in [&big, &small] {
        let status = status(&store, batch).await;
        assert_eq!(status.state, BatchState::Completed);
        assert_eq!(status.progress.completed, batch.runs);
        assert_eq!(store.aggregates(batch.id).await.unwrap().runs, batch.runs);
    }
    let sql = "select count(*), count(distinct (batch_id, index)),
        count(*) filter (where (result ->> 'run')::bigint = index) from tidegate.results";
    let all = (RUNS + RUNS / 10).to_string();
    assert_eq!(database.rows(sql).await, [[&all[..], &all, &all]]);
}

async fn status(store: &Postgres, batch: &Batch) -> tidegate_core::inspect::BatchStatus {
    store.batches(BatchQuery::one(batch.id)).await.unwrap().remove(0)
}

/// Returns how many batches this worker closed.
async fn work_until_done(database: &Database, worker: i64) -> usize {
    let store = database.connect().await;
    let mut settled_runs = std::collections::BTreeMap::<BatchId, u64>::new();
    let mut sequences = std::collections::BTreeMap::<BatchId, i64>::new();
    let mut finalized = 0;
    loop {
        let claim = store.claim(request(3, 97)).await.unwrap();
        finalized += store.finalize(claim.settled.clone()).await.unwrap().len();
        if claim.open == 0 {
            break;
        }
        let (unwanted, leases): (Vec<_>, Vec<_>) =
            claim.leases.into_iter().partition(|lease| lease.fence.0 % 7 == 0);
        store.give_back(unwanted).await.unwrap();
        let mut parts = Vec::new();
        for lease in &leases {
            let retried = matches!(lease.items, Items::Retries(_));
            let part = part(lease, |index| index % 10 == 0 && !retried);
            *settled_runs.entry(lease.batch).or_default() +=
                part.progress.len() - part.failed.len() as u64;
            parts.push(part);
        }
        let mut batches: Vec<BatchId> = parts.iter().map(|part| part.batch).collect();
        batches.sort();
        batches.dedup();
        let totals = batches.iter().map(|batch| {
            let sequence = sequences.entry(*batch).or_default();
            *sequence += 1;
            total(*batch, worker, *sequence, settled_runs[batch])
        });
        let settlement = settlement(parts, totals.collect());
        assert_eq!(store.settle(settlement).await.unwrap(), Settled::Applied);
    }
    finalized
}

#[tokio::test]
async fn a_settlement_that_is_sent_again_is_applied_once() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let batch = store.submit(new_batch(10)).await.unwrap().id;
    let lease = store.claim(request(1, 10)).await.unwrap().leases.remove(0);
    let settlement = settlement(vec![part(&lease, |_| false)], vec![total(batch, 7, 1, 10)]);
    let sent = (0..8).map(|_| store.settle(settlement.clone()));
    let answers = try_join_all(sent).await.unwrap();
    assert!(answers.iter().all(|answer| *answer == Settled::Applied), "{answers:?}");
    assert_eq!(database.rows("select count(*) from tidegate.results").await, [["10"]]);
}

#[tokio::test]
async fn a_lost_lease_changes_nothing() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let batch = store.submit(new_batch(20)).await.unwrap().id;
    let claim = store.claim(request(2, 10)).await.unwrap();
    store.give_back(vec![claim.leases[0].clone()]).await.unwrap();
    let again: Claim = store.claim(request(1, 10)).await.unwrap();
    assert_eq!(again.leases[0].items, claim.leases[0].items);

    let parts = claim.leases.iter().map(|lease| part(lease, |_| false)).collect();
    let answer = store.settle(settlement(parts, vec![total(batch, 7, 1, 20)])).await.unwrap();
    assert_eq!(answer, Settled::Late(vec![claim.leases[0].fence]));
    assert_eq!(database.rows("select count(*) from tidegate.page").await, [["0"]]);
    assert_eq!(store.aggregates(batch).await.unwrap(), Aggregates::default());
}

#[tokio::test]
async fn a_retry_under_its_old_and_its_new_fence_is_late() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let batch = store.submit(new_batch(1)).await.unwrap().id;
    let first = store.claim(request(1, 1)).await.unwrap().leases.remove(0);
    let failed = settlement(vec![part(&first, |_| true)], vec![total(batch, 7, 1, 0)]);
    assert_eq!(store.settle(failed).await.unwrap(), Settled::Applied);
    let short = ClaimRequest { lease: Duration::ZERO, ..request(1, 1) };
    let old = store.claim(short).await.unwrap().leases.remove(0);
    let new = store.claim(request(1, 1)).await.unwrap().leases.remove(0);

    let parts = vec![part(&old, |_| false), part(&new, |_| false)];
    let answer = store.settle(settlement(parts, vec![total(batch, 7, 2, 1)])).await.unwrap();
    assert_eq!(answer, Settled::Late(vec![old.fence]));
    let renewal = Renewal { leases: vec![old.clone(), new], lease: LEASE };
    assert_eq!(store.renew(renewal).await.unwrap(), [old.fence]);
}

#[tokio::test]
async fn a_claim_that_crossed_a_cancellation_settles_nothing() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let batch = store.submit(new_batch(10)).await.unwrap().id;
    let lease = store.claim(request(1, 10)).await.unwrap().leases.remove(0);
    store.cancel(batch).await.unwrap();
    // As if the cancellation had not seen the lease.
    database.execute(&format!("update tidegate.lease set fence = {}", lease.fence.0)).await;

    let settlement = settlement(vec![part(&lease, |_| false)], vec![total(batch, 7, 1, 10)]);
    assert_eq!(store.settle(settlement).await.unwrap(), Settled::Late(vec![lease.fence]));
    let renewal = Renewal { leases: vec![lease.clone()], lease: LEASE };
    assert_eq!(store.renew(renewal).await.unwrap(), [lease.fence]);
}

#[tokio::test]
async fn a_call_past_its_deadline_fails_and_leaves_nothing_behind() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    store.submit(new_batch(10)).await.unwrap();
    let blocker = database.client().await;
    blocker.batch_execute("begin; lock table tidegate.lease").await.unwrap();

    // Paused, the clock jumps to the deadline as soon as everybody waits for the server.
    tokio::time::pause();
    let error = store.claim(request(1, 10)).await.unwrap_err();
    tokio::time::resume();
    assert_eq!((error.kind(), error.class()), (Kind::Deadline, Class::Transient));

    // Its cancellation is on its way: the statement must not get the lock before.
    let waiting = "select 1 from pg_stat_activity \
                   where datname = current_database() and wait_event_type = 'Lock'";
    let gone = async {
        while !database.rows(waiting).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
    blocker.batch_execute("commit").await.unwrap();
    let claim = store.claim(request(1, 10)).await.unwrap();
    assert_eq!(claim.leases.len(), 1);
}

#[tokio::test]
async fn the_view_has_one_row_per_kept_result() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let batch = store.submit(new_batch(20)).await.unwrap().id;
    let leases = store.claim(request(2, 10)).await.unwrap().leases;
    let parts = vec![part(&leases[0], |_| false), part(&leases[1], |index| index % 2 == 0)];
    store.settle(settlement(parts, vec![total(batch, 7, 1, 15)])).await.unwrap();

    let sparse = "select count(*) from tidegate.page where indexes is not null";
    assert_eq!(database.rows(sparse).await, [["1"]]);
    let sql = "select index, result from tidegate.results order by index";
    let kept = (0..10).chain((11..20).step_by(2));
    let expected: Vec<_> = kept.map(|i| vec![i.to_string(), format!("{{\"run\": {i}}}")]).collect();
    assert_eq!(database.rows(sql).await, expected);
}

#[tokio::test]
async fn a_damaged_batch_keeps_no_other_from_being_closed() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let damaged = store.submit(new_batch(1)).await.unwrap().id;
    let sound = store.submit(new_batch(1)).await.unwrap().id;
    let leases = store.claim(request(2, 1)).await.unwrap().leases;
    let parts = leases.iter().map(|lease| part(lease, |_| false)).collect();
    let totals = vec![total(damaged, 7, 1, 1), total(sound, 7, 1, 1)];
    store.settle(settlement(parts, totals)).await.unwrap();
    database
        .execute(&format!("update tidegate.part set body = '' where batch_id = {damaged}"))
        .await;

    let settled = store.claim(request(1, 1)).await.unwrap().settled;
    assert_eq!(settled, [damaged, sound]);
    let closed = store.finalize(settled).await.unwrap();
    assert_eq!((closed.len(), closed[0].batch), (1, sound));
    let error = store.finalize(vec![damaged]).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains(&format!("batch {damaged}")), "{error}");
}

#[tokio::test]
async fn migrating_twice_and_from_several_processes_is_safe() {
    for variable in [POSTGRES, PGBOUNCER] {
        let database = Database::create(variable).await;
        let stores = join_all((0..8).map(|_| database.connect())).await;
        assert_eq!(stores[0].schema().await.unwrap(), Schema::Missing);
        let applied = try_join_all(stores.iter().map(|store| store.migrate())).await.unwrap();
        let all = [
            "0001_batches",
            "0002_pace",
            "0003_loads",
            "0004_outbox",
            "0005_adopted",
            "0006_relay",
            "0007_durable",
            "0008_segments",
            "0009_progress",
            "0010_leases",
            "0011_publish",
            "0012_epoch",
            "0013_steer",
            "0014_losses",
            "0015_sinks",
            "0016_due",
            "0017_adopted",
            "0018_retention",
            "0019_checks",
            "0020_noted_keys",
            "0021_take_over",
            "0022_retention_beside_claims",
            "0023_adopted_due",
            "0024_keys",
            "0025_settle",
        ];
        assert_eq!(applied.concat(), all, "one process applied them");
        assert_eq!(stores[7].schema().await.unwrap(), Schema::Current);
        assert!(stores[7].migrate().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_script_does_what_migrating_does_and_may_be_applied_twice() {
    let database = Database::create(POSTGRES).await;
    let store = database.connect().await;
    database.execute(&tidegate_postgres::script()).await;
    database.execute(&tidegate_postgres::script()).await;
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    assert!(store.migrate().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_older_schema_is_recognized() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    database.execute("delete from tidegate.migration where version > 1").await;
    let schema = store.schema().await.unwrap();
    assert!(matches!(schema, Schema::Outdated { found: 1, needed: 2.. }), "{schema:?}");
}

#[tokio::test]
async fn a_missing_schema_says_what_to_run() {
    let database = Database::create(POSTGRES).await;
    let store = database.connect().await;
    let error = store.claim(request(1, 1)).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (Kind::SchemaOutdated, Class::Permanent));
    assert!(error.to_string().contains("tidegate migrate"), "{error}");
}

#[tokio::test]
async fn a_read_only_server_is_recognized() {
    let database = Database::create(POSTGRES).await;
    database.store().await;
    let name = database.url().path()[1..].to_owned();
    database
        .execute(&format!("alter database {name} set default_transaction_read_only = on"))
        .await;
    let error = database.connect().await.submit(new_batch(1)).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (Kind::ReadOnly, Class::Unavailable));
}

#[tokio::test]
async fn a_wrong_address_gets_one_clear_line() {
    let database = Database::create(POSTGRES).await;
    let mut nowhere = database.url();
    // Port 1 is reserved; nobody listens there.
    nowhere.set_port(Some(1)).unwrap();
    check_refusal(nowhere, Kind::Unreachable, "no PostgreSQL answers at").await;
    let mut missing = database.url();
    missing.set_path("no_such_database");
    check_refusal(missing, Kind::BadAddress, "\"no_such_database\" does not exist").await;
    let mut stranger = database.url();
    stranger.set_username("nobody_we_know").unwrap();
    check_refusal(stranger, Kind::BadAddress, "nobody_we_know").await;
}

async fn check_refusal(mut url: url::Url, kind: Kind, text: &str) {
    url.set_password(Some("open-sesame")).unwrap();
    let error = Postgres::connect(url.as_str()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let message = error.to_string();
    assert!(message.contains(text) && !message.contains('\n'), "{message}");
    assert!(!format!("{error:?}").contains("open-sesame"));
}
