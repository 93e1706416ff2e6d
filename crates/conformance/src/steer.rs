//! Cancelling and retrying.

use crate::{
    harness::{AT_ONCE, Bench, LATER, NO_BATCH, ask},
    settle::retry_lease,
    work::{Work, retries, sums},
};
use tidegate_core::{
    BatchId, BatchState, ExceptionState, Kind, StoreError, inspect::Progress, limits::MAX_RETRIED,
    settle::Settled, submit::Retried,
};

fn kind<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> Kind {
    let error = answer.expect_err("it must not succeed");
    assert!(!error.is_passing(), "{error}");
    error.kind()
}

async fn cancel(bench: &Bench, batch: BatchId) {
    bench.store.cancel(batch).await.expect("cancel");
}

async fn retry(bench: &Bench, batch: BatchId) -> u64 {
    bench.store.retry(batch, 0).await.expect("retry").runs
}

pub(crate) async fn a_cancelled_batch_is_not_claimed(bench: Bench) {
    let id = bench.submit(30).await;
    let leases = bench.claim_expired(2, 10).await;
    bench.apply([Work::all(&leases[1]).retry(15, AT_ONCE)]).await;
    cancel(&bench, id).await;
    let claim = bench.ask(ask(8, 10)).await;
    assert_eq!((claim.leases.len(), claim.open, claim.next_due), (0, 0, None));
    assert_eq!(claim.settled, []);
    let status = bench.status(id).await;
    assert_eq!(status.state, BatchState::Cancelled);
    assert!(status.finished_ms.is_some());
}

pub(crate) async fn a_cancelled_batch_is_not_settled(bench: Bench) {
    let failing = retry_lease(&bench, 3).await;
    let id = bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    cancel(&bench, failing.batch).await;
    cancel(&bench, id).await;
    for lease in [failing, lease] {
        let before = bench.observe(lease.batch).await;
        assert_eq!(bench.settle([Work::all(&lease)]).await, Settled::Late(vec![lease.fence]));
        assert_eq!(bench.renew(std::slice::from_ref(&lease), LATER).await, [lease.fence]);
        bench.give_back(std::slice::from_ref(&lease)).await;
        assert_eq!(bench.observe(lease.batch).await, before);
    }
    assert!(bench.claim(8, 5).await.is_empty());
}

pub(crate) async fn what_was_settled_before_stays(bench: Bench) {
    let id = bench.submit(100).await;
    let leases = bench.claim(3, 10).await;
    bench.apply([Work::all(&leases[0]).retry(2, AT_ONCE).dead(3)]).await;
    bench.apply([Work::some(&leases[1], 0, 4)]).await;
    let before = bench.observe(id).await;
    cancel(&bench, id).await;
    let after = bench.observe(id).await;
    let expected = Progress { completed: 12, dead: 1, retrying: 1, leased: 16, untouched: 70 };
    assert_eq!(after.progress, expected);
    assert_eq!(after.exceptions, before.exceptions);
    assert_eq!(after.pages, before.pages);
    assert_eq!(after.aggregates, before.aggregates);
}

pub(crate) async fn a_cancellation_touches_no_other_batch(bench: Bench) {
    let (one, two) = (bench.submit(5).await, bench.submit(5).await);
    let leases = bench.claim(2, 5).await;
    cancel(&bench, one).await;
    let other = leases.iter().find(|lease| lease.batch == two).expect("it was leased");
    bench.apply([Work::all(other)]).await;
    assert_eq!(bench.finalize(&[one, two]).await.len(), 1);
}

pub(crate) async fn only_a_running_batch_is_cancelled(bench: Bench) {
    let id = bench.submit(5).await;
    bench.work_off(5).await;
    bench.finalize(&[id]).await;
    assert_eq!(kind(bench.store.cancel(id).await), Kind::Refused);
    assert_eq!(bench.state(id).await, BatchState::Completed);
    let id = bench.submit(5).await;
    cancel(&bench, id).await;
    assert_eq!(kind(bench.store.cancel(id).await), Kind::Refused);
    assert_eq!(kind(bench.store.cancel(NO_BATCH).await), Kind::NotFound);
}

pub(crate) async fn a_cancelled_batch_is_not_retried(bench: Bench) {
    let id = bench.submit(2).await;
    let lease = bench.claim_one(2).await;
    bench.apply([Work::all(&lease).dead(0)]).await;
    cancel(&bench, id).await;
    let before = bench.observe(id).await;
    assert_eq!(kind(bench.store.retry(id, 0).await), Kind::Refused);
    assert_eq!(bench.observe(id).await, before);
    assert_eq!(kind(bench.store.retry(NO_BATCH, 0).await), Kind::NotFound);
}

pub(crate) async fn without_dead_runs_a_retry_changes_nothing(bench: Bench) {
    let id = bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    bench.apply([Work::all(&lease).retry(1, AT_ONCE)]).await;
    let running = bench.observe(id).await;
    assert_eq!(retry(&bench, id).await, 0);
    assert_eq!(bench.observe(id).await, running);
    bench.work_off(5).await;
    bench.finalize(&[id]).await;
    let completed = bench.observe(id).await;
    assert_eq!(completed.state, BatchState::Completed);
    assert_eq!(retry(&bench, id).await, 0);
    assert_eq!(bench.observe(id).await, completed);
}

pub(crate) async fn a_running_batch_is_retried_while_it_runs(bench: Bench) {
    let id = bench.submit(10).await;
    let leases = bench.claim(2, 5).await;
    bench.apply([Work::all(&leases[0]).dead(0).dead(4).retry(2, LATER)]).await;
    assert_eq!(retry(&bench, id).await, 2);
    let progress = bench.progress(id).await;
    assert_eq!((progress.dead, progress.retrying, progress.leased), (0, 3, 5));
    let lease = bench.claim_one(5).await;
    assert_eq!(retries(&lease), [(0, 0), (4, 0)], "the retry that is not due waits on");
    bench.apply([Work::all(&lease), Work::all(&leases[1])]).await;
    assert_eq!(bench.aggregates(id).await, sums([0, 1, 3, 4, 5, 6, 7, 8, 9]));
}

pub(crate) async fn dead_runs_are_retried_in_pages(bench: Bench) {
    let runs = 2 * MAX_RETRIED + 10;
    let id = bench.submit(runs).await;
    let lease = bench.claim_one(runs).await;
    let dead = (0..runs).filter(|index| index % 2 == 0);
    let failed = dead.fold(Work::all(&lease), |work, index| work.dead(index));
    bench.apply([failed.page(None)]).await;
    bench.finalize(&[id]).await;
    let next = Some(2 * MAX_RETRIED);
    let page = bench.store.retry(id, 0).await.expect("retry");
    assert_eq!(page, Retried { runs: MAX_RETRIED, next });
    assert_eq!(bench.state(id).await, BatchState::Running);
    let page = bench.store.retry(id, 2 * MAX_RETRIED + 3).await.expect("retry");
    assert_eq!(page, Retried { runs: 3, next: None });
    let page = bench.store.retry(id, 0).await.expect("retry");
    assert_eq!(page, Retried { runs: 2, next: None }, "whoever begins anew finds what is left");
    let page = bench.store.retry(id, u64::MAX).await.expect("retry");
    assert_eq!(page, Retried { runs: 0, next: None });
    assert_eq!(bench.progress(id).await.dead, 0);
}

pub(crate) async fn a_retried_run_keeps_its_reason_and_starts_to_count_anew(bench: Bench) {
    let id = bench.submit(1).await;
    let lease = bench.claim_one(1).await;
    bench.apply([Work::all(&lease).dead(0)]).await;
    let dead = bench.exceptions(id).await.remove(0);
    retry(&bench, id).await;
    let due = bench.exceptions(id).await.remove(0);
    assert_eq!((due.attempts, due.state), (0, ExceptionState::Retry));
    assert_eq!(due.reason, dead.reason);
}
