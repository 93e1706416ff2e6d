//! Work that is lost with its workers: found, leased alone, and given up in the end.

use crate::{
    harness::{AT_ONCE, Bench, LATER, ask, new_batch},
    work::{Work, range, retries, sums},
};
use tidegate_core::{
    BatchId, BatchState, Exception, ExceptionState, Lease, RetryPolicy, WorkerId,
    claim::ClaimRequest, submit::NewBatch,
};

/// More claims than any of these batches needs.
const CLAIMS: usize = 1_000;

async fn submit(bench: &Bench, runs: u64, max_attempts: u32) -> BatchId {
    let retry = RetryPolicy { max_attempts, ..RetryPolicy::default() };
    bench.submit_batch(NewBatch { retry, ..new_batch(runs) }).await.id
}

/// Loses what there is to claim, `times` times.
async fn lose(bench: &Bench, slots: usize, length: u64, times: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    for _ in 0..times {
        leases = bench.claim_expired(slots, length).await;
    }
    leases
}

/// Works until nothing is left. A worker that gets one of the `deadly` runs ends: all leases of its
/// claim are lost, unless they were settled before.
async fn work_with(bench: &Bench, deadly: &[u64], length: u64) {
    for _ in 0..CLAIMS {
        let request = ask(4, length);
        let claim = bench.ask(ClaimRequest { lease: AT_ONCE, ..request }).await;
        bench.finalize(&claim.settled).await;
        if claim.open == 0 {
            return;
        }
        let indexes = |lease: &Lease| {
            (0..lease.items.len()).map(|n| lease.items.nth(n).index).collect::<Vec<_>>()
        };
        let ends = |lease: &Lease| indexes(lease).iter().any(|index| deadly.contains(index));
        if !claim.leases.iter().any(ends) && !claim.leases.is_empty() {
            bench.apply(claim.leases.iter().map(Work::all)).await;
        }
    }
    panic!("{CLAIMS} claims were not enough");
}

pub(crate) async fn a_range_that_was_lost_twice_is_leased_run_by_run(bench: Bench) {
    let id = submit(&bench, 6, 5).await;
    assert_eq!(range(&bench.claim_expired(1, 6).await[0]).len(), 6);
    let again = bench.claim_expired(1, 6).await;
    assert!(range(&again[0]).len() == 6 && !again[0].suspect);
    assert!(bench.claim_expired(1, 6).await.is_empty(), "it is split");
    let progress = bench.progress(id).await;
    assert_eq!((progress.leased, progress.untouched), (0, 6), "whoever had them is gone");
    for index in 0..6 {
        let lease = bench.claim_one(6).await;
        assert!(lease.suspect && range(&lease).lo == index && range(&lease).len() == 1);
        assert!(bench.claim(4, 6).await.is_empty(), "a worker holds one suspect at a time");
        bench.apply([Work::all(&lease)]).await;
    }
    assert_eq!(bench.finalize(&[id]).await[0].state, BatchState::Completed);
    assert_eq!(bench.aggregates(id).await, sums(0..6));
}

pub(crate) async fn another_worker_may_have_another_suspect(bench: Bench) {
    submit(&bench, 2, 5).await;
    lose(&bench, 1, 2, 3).await;
    let other = WorkerId("another worker".to_owned());
    let one = bench.claim_one(2).await;
    let two = bench.ask(ClaimRequest { worker: other, ..ask(4, 2) }).await.leases;
    assert_eq!((range(&one).lo, range(&two[0]).lo, two.len()), (0, 1, 1));
}

pub(crate) async fn a_suspect_delays_no_other_work(bench: Bench) {
    submit(&bench, 4, 5).await;
    lose(&bench, 1, 4, 3).await;
    let other = submit(&bench, 4, 5).await;
    let leases = bench.claim(3, 4).await;
    assert!(leases[0].suspect && leases[1..].iter().all(|lease| !lease.suspect));
    assert!(leases[1..].iter().all(|lease| lease.batch == other) && leases.len() > 1);
}

pub(crate) async fn a_long_range_is_split_into_parts(bench: Bench) {
    let id = submit(&bench, 1_000_000, 5).await;
    lose(&bench, 1, 1_000_000, 3).await;
    let lease = bench.claim_expired(1, 1_000_000).await.remove(0);
    assert!(lease.suspect && range(&lease).len() == 15_625, "{lease:?}");
    let progress = async || {
        let progress = bench.progress(id).await;
        (progress.leased, progress.untouched)
    };
    assert_eq!(progress().await, (0, 1_000_000));
    lose(&bench, 1, 1_000_000, 1).await;
    assert_eq!(range(&bench.claim_one(1_000_000).await).len(), 245);
    assert_eq!(progress().await, (245, 999_755));
}

pub(crate) async fn a_run_that_ends_its_workers_is_given_up_alone(bench: Bench) {
    for (runs, length, max_attempts, ends) in [(1, 1, 1, 5), (1, 1, 6, 6), (300, 300, 5, 5)] {
        let id = submit(&bench, runs, max_attempts).await;
        let deadly = runs / 2;
        work_with(&bench, &[deadly], length).await;
        assert_eq!(bench.state(id).await, BatchState::CompletedWithFailures);
        let reason = format!("its worker ended {ends} times");
        let state = ExceptionState::Dead;
        let dead = Exception { batch: id, index: deadly, attempts: ends, state, reason };
        assert_eq!(bench.exceptions(id).await, [dead]);
        assert_eq!(bench.aggregates(id).await, sums((0..runs).filter(|index| *index != deadly)));
    }
}

pub(crate) async fn several_such_runs_in_several_batches_are_given_up_and_no_other(bench: Bench) {
    let ids = [submit(&bench, 40, 3).await, submit(&bench, 90, 5).await];
    work_with(&bench, &[3, 17, 89], 30).await;
    for (id, runs, expected) in [(ids[0], 40, &[3, 17][..]), (ids[1], 90, &[3, 17, 89])] {
        let dead: Vec<u64> = bench.exceptions(id).await.iter().map(|dead| dead.index).collect();
        assert_eq!(dead, expected);
        let done = (0..runs).filter(|index| !expected.contains(index));
        assert_eq!(bench.aggregates(id).await, sums(done));
    }
}

pub(crate) async fn a_retry_that_ends_its_workers_is_given_up_alone(bench: Bench) {
    let id = submit(&bench, 4, 2).await;
    let lease = bench.claim_one(4).await;
    let failed = (0..4).fold(Work::all(&lease), |work, index| work.retry(index, AT_ONCE));
    bench.apply([failed]).await;
    assert_eq!(retries(&lose(&bench, 1, 4, 2).await[0]).len(), 4);
    assert_eq!(retries(&bench.claim_expired(1, 4).await[0]), [(0, 1)]);
    work_with(&bench, &[2], 4).await;
    let dead = bench.exceptions(id).await;
    assert_eq!((dead.len(), dead[0].index, &*dead[0].reason), (1, 2, "its worker ended 5 times"));
    assert_eq!(bench.aggregates(id).await, sums([0, 1, 3]));
}

pub(crate) async fn what_is_given_back_is_not_lost(bench: Bench) {
    submit(&bench, 6, 1).await;
    for _ in 0..10 {
        let lease = bench.claim_one(6).await;
        assert!(range(&lease).len() == 6 && !lease.suspect);
        bench.give_back(&[lease]).await;
    }
    let lease = bench.claim_one(6).await;
    let failed = (0..6).fold(Work::all(&lease), |work, index| work.retry(index, AT_ONCE));
    bench.apply([failed]).await;
    for _ in 0..10 {
        let lease = bench.claim_one(6).await;
        assert!(retries(&lease).len() == 6 && !lease.suspect);
        bench.give_back(&[lease]).await;
    }
}

pub(crate) async fn a_worker_that_is_alive_takes_its_loss_back(bench: Bench) {
    submit(&bench, 6, 1).await;
    let mut lost = bench.claim_expired(1, 6).await.remove(0);
    for _ in 0..10 {
        let next = bench.claim_expired(1, 6).await.remove(0);
        assert!(range(&next).len() == 6 && !next.suspect);
        bench.give_back(&[lost]).await;
        lost = next;
    }
    lose(&bench, 1, 6, 1).await;
    assert!(bench.claim_expired(1, 6).await.is_empty(), "two losses: it is split");
}

pub(crate) async fn a_lost_lease_and_the_next_one_are_given_back_together(bench: Bench) {
    submit(&bench, 6, 1).await;
    for _ in 0..5 {
        let lost = bench.claim_expired(1, 6).await.remove(0);
        let held = bench.claim_one(6).await;
        bench.give_back(&[lost, held.clone()]).await;
        assert_eq!(bench.renew(std::slice::from_ref(&held), LATER).await, [held.fence]);
    }
    let lease = bench.claim_one(6).await;
    let failed = (0..6).fold(Work::all(&lease), |work, index| work.retry(index, AT_ONCE));
    bench.apply([failed]).await;
    for _ in 0..5 {
        let lost = bench.claim_expired(1, 6).await.remove(0);
        let held = bench.claim_one(6).await;
        assert_eq!((retries(&held).len(), held.suspect), (6, false));
        bench.give_back(&[held, lost]).await;
    }
}

pub(crate) async fn a_suspect_whose_worker_is_alive_is_none(bench: Bench) {
    submit(&bench, 6, 1).await;
    let lost = lose(&bench, 1, 6, 2).await;
    assert!(bench.claim_expired(1, 6).await.is_empty(), "it is split");
    bench.give_back(&lost).await;
    let parts = bench.claim(6, 6).await;
    assert!(parts.len() == 6 && parts.iter().all(|part| !part.suspect), "{parts:?}");
}

pub(crate) async fn a_person_who_retries_a_lost_run_begins_anew(bench: Bench) {
    let id = submit(&bench, 1, 1).await;
    work_with(&bench, &[0], 1).await;
    assert_eq!(bench.exceptions(id).await[0].state, ExceptionState::Dead);
    assert_eq!(bench.store.retry(id, 0).await.expect("retry").runs, 1);
    let lease = bench.claim_one(1).await;
    assert!(!lease.suspect && retries(&lease) == [(0, 0)]);
    let lost = bench.renew(std::slice::from_ref(&lease), LATER).await;
    assert!(lost.is_empty());
    bench.apply([Work::all(&lease)]).await;
    assert_eq!(bench.finalize(&[id]).await[0].state, BatchState::Completed);
}
