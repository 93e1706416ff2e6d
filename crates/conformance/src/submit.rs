//! Submitting: one batch, whatever its size, exactly as it was asked for.

use crate::harness::{Bench, WORKLOAD, ask, at_once, new_batch, snapshot};
use std::{collections::BTreeSet, time::Duration};
use tidegate_core::{
    BatchState, Keep, Kind, RetryPolicy,
    claim::ClaimRequest,
    inspect::{BatchQuery, Progress},
    limits::{MAX_RUNS, MAX_SNAPSHOT_BYTES},
    submit::{NewBatch, Once},
};

pub(crate) async fn a_batch_is_stored_as_it_was_submitted(bench: Bench) {
    let retry = RetryPolicy {
        max_attempts: 9,
        base: Duration::from_millis(70),
        cap: Duration::from_secs(80),
    };
    for (keep, timeout) in [
        (Keep::All, None),
        (Keep::None, Some(Duration::from_millis(1_500))),
        (Keep::Sample(7), Some(Duration::from_secs(86_400))),
    ] {
        let new = NewBatch { keep, timeout, retry, ..new_batch(12) };
        let batch = bench.submit_batch(new.clone()).await;
        assert_eq!(batch, new.into_batch(batch.id));
        let status = bench.status(batch.id).await;
        assert_eq!((status.batch, status.state), (batch, BatchState::Running));
        assert_eq!(status.progress, Progress { untouched: 12, ..Progress::default() });
        assert!(status.created_ms > 0 && status.finished_ms.is_none());
    }
}

pub(crate) async fn there_is_one_batch_of_a_workload_that_is_submitted_once(bench: Bench) {
    let load = || NewBatch { workload: WORKLOAD.to_owned(), ..new_batch(1) };
    let once = async |again| {
        let once = bench.store.submit_once(load(), again).await;
        once.expect("the store answers")
    };
    let (one, two) = tokio::join!(once(false), once(true));
    assert_eq!((one.id, one.found as u8 + two.found as u8), (two.id, 1), "one of them stored it");
    let other = NewBatch { workload: "another".to_owned(), ..new_batch(1) };
    assert!(bench.submit_batch(other).await.id > one.id);
    assert_eq!(once(true).await, Once { id: one.id, found: true }, "it is running");
    bench.store.cancel(one.id).await.expect("it is running");
    let next = once(false).await;
    assert!(next.id > one.id && !next.found, "one that was cancelled does not count");
    bench.work_off(1).await;
    bench.finalize(&[next.id]).await;
    assert_eq!(bench.state(next.id).await, BatchState::Completed);
    assert_eq!(once(false).await, Once { id: next.id, found: true }, "it was completed");
    let last = once(true).await;
    assert!(last.id > next.id && !last.found);
}

pub(crate) async fn every_seed_survives(bench: Bench) {
    for seed in [0, 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        let batch = bench.submit_batch(NewBatch { seed, ..new_batch(1) }).await;
        assert_eq!(batch.seed, seed);
        assert_eq!(bench.status(batch.id).await.batch.seed, seed);
    }
}

pub(crate) async fn one_run_and_a_trillion_are_accepted(bench: Bench) {
    for runs in [1, 1_000_000_000, MAX_RUNS] {
        let id = bench.submit(runs).await;
        assert_eq!(bench.progress(id).await.untouched, runs);
        let request = ClaimRequest { only: Some(id), ..ask(1, 1) };
        assert_eq!(bench.ask(request).await.leases.len(), 1);
    }
}

pub(crate) async fn what_cannot_be_held_is_refused_and_not_stored(bench: Bench) {
    let one_try = RetryPolicy { max_attempts: 0, ..RetryPolicy::default() };
    let huge = snapshot(&format!("\"{}\"", "x".repeat(MAX_SNAPSHOT_BYTES)));
    for new in [
        new_batch(0),
        new_batch(MAX_RUNS + 1),
        NewBatch { retry: one_try, ..new_batch(1) },
        NewBatch { snapshot: huge, ..new_batch(1) },
    ] {
        let hash = new.snapshot.hash();
        let error = bench.store.submit(new).await.expect_err("it cannot be held");
        assert_eq!(error.kind(), Kind::Refused, "{error}");
        assert!(!error.is_passing());
        assert_eq!(bench.store.snapshot(hash).await.expect("read a snapshot"), None);
    }
    assert!(bench.list(BatchQuery::newest(10)).await.is_empty());
}

pub(crate) async fn batches_share_a_snapshot_by_its_hash(bench: Bench) {
    let (one, two) = (bench.submit(1).await, bench.submit(1).await);
    let other = snapshot(r#"{"another":1}"#);
    bench.submit_batch(NewBatch { snapshot: other.clone(), ..new_batch(1) }).await;
    let claim = bench.ask(ask(3, 1)).await;
    let mine = new_batch(1).snapshot;
    let mut sent = claim.snapshots.clone();
    sent.sort_by_key(|snapshot| snapshot.text().len());
    assert_eq!(sent, [other, mine.clone()]);
    for id in [one, two] {
        assert_eq!(bench.status(id).await.batch.snapshot, mine.hash());
    }
    assert_eq!(bench.store.snapshot(mine.hash()).await.expect("read a snapshot"), Some(mine));
}

pub(crate) async fn strange_text_survives(bench: Bench) {
    let workload = "wörk'load\"; -- 🎲 \\ %_ $1 ?1 :a\n".to_owned();
    // The escaped NUL is what JSON columns of some stores refuse; the spaces, what they drop.
    let text = r#"{"a":"it's \"quoted\" \\ \u0000 \n 🎲 é","b": 1.0, "c":1e400,"b":2}"#;
    let frozen = snapshot(text);
    let new = NewBatch { workload: workload.clone(), snapshot: frozen.clone(), ..new_batch(1) };
    let batch = bench.submit_batch(new).await;
    assert_eq!(bench.status(batch.id).await.batch.workload, workload);
    let claim = bench.ask(ClaimRequest { workloads: vec![workload], ..ask(1, 1) }).await;
    assert_eq!((claim.batches, claim.snapshots), (vec![batch], vec![frozen.clone()]));
    assert_eq!(bench.store.snapshot(frozen.hash()).await.expect("read a snapshot"), Some(frozen));
}

pub(crate) async fn a_large_snapshot_survives(bench: Bench) {
    let large = snapshot(&format!("\"{}\"", "é".repeat(MAX_SNAPSHOT_BYTES / 2 - 1)));
    assert_eq!(large.text().len(), MAX_SNAPSHOT_BYTES);
    bench.submit_batch(NewBatch { snapshot: large.clone(), ..new_batch(1) }).await;
    assert!(bench.ask(ask(1, 1)).await.snapshots == [large]);
}

pub(crate) async fn ids_grow(bench: Bench) {
    let mut last = bench.submit(1).await;
    for _ in 0..3 {
        let id = bench.submit(1).await;
        assert!(id > last);
        last = id;
    }
}

pub(crate) async fn concurrent_submissions_of_one_snapshot_all_succeed(bench: Bench) {
    let submit = |_| {
        let bench = bench.clone();
        async move { bench.submit(5).await }
    };
    let ids: BTreeSet<_> = at_once(8, submit).await.into_iter().collect();
    assert_eq!(ids.len(), 8);
    let claim = bench.ask(ClaimRequest { workloads: vec![WORKLOAD.to_owned()], ..ask(8, 5) }).await;
    assert_eq!((claim.open, claim.leases.len(), claim.snapshots.len()), (8, 8, 1));
}
