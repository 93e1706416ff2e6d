//! Finalizing: once, when nothing is outstanding, with the aggregates.

use crate::{
    harness::{AT_ONCE, Bench, LATER, NO_BATCH, ask, at_once, new_batch},
    work::{Work, retries, sums},
};
use std::time::Duration;
use tidegate_core::{
    Aggregates, BatchId, BatchState, Lease, RetryPolicy,
    claim::ClaimRequest,
    inspect::Progress,
    settle::{Settled, Settlement},
    source::Finalized,
    submit::NewBatch,
};

fn closed(batch: BatchId, state: BatchState) -> Vec<Finalized> {
    vec![Finalized { batch, state }]
}

/// A batch that is settled, with the runs `dead` dead.
async fn settled(bench: &Bench, runs: u64, dead: &[u64]) -> BatchId {
    let id = bench.submit(runs).await;
    let lease = bench.claim_one(runs).await;
    bench.apply([dead.iter().fold(Work::all(&lease), |work, index| work.dead(*index))]).await;
    id
}

pub(crate) async fn not_while_anything_is_outstanding(bench: Bench) {
    let id = bench.submit(2).await;
    let refuses = async |what| {
        assert_eq!(bench.finalize(&[id]).await, [], "{what}");
        assert_eq!(bench.state(id).await, BatchState::Running, "{what}");
    };
    refuses("untouched").await;
    let first = bench.claim_one(1).await;
    bench.apply([Work::all(&first)]).await;
    refuses("half untouched").await;
    let [last] = bench.claim_expired(1, 1).await.try_into().expect("one range");
    refuses("an expired lease").await;
    bench.apply([Work::all(&last).retry(1, LATER)]).await;
    refuses("a retry that is not due").await;
}

pub(crate) async fn not_while_a_retry_is_held(bench: Bench) {
    let id = bench.submit(1).await;
    let lease = bench.claim_one(1).await;
    bench.apply([Work::all(&lease).retry(0, AT_ONCE)]).await;
    assert_eq!(bench.finalize(&[id]).await, []);
    let lease = bench.claim_one(1).await;
    assert_eq!(bench.finalize(&[id]).await, []);
    bench.apply([Work::all(&lease)]).await;
    assert_eq!(bench.finalize(&[id]).await, closed(id, BatchState::Completed));
}

pub(crate) async fn a_settled_batch_is_closed_with_its_aggregates(bench: Bench) {
    let id = bench.submit(30).await;
    bench.work_off(7).await;
    let before = bench.observe(id).await;
    assert_eq!((before.state, before.finished), (BatchState::Running, false));
    assert_eq!(bench.finalize(&[id]).await, closed(id, BatchState::Completed));
    let after = bench.observe(id).await;
    assert_eq!((after.state, after.finished), (BatchState::Completed, true));
    assert_eq!(after.progress, Progress { completed: 30, ..Progress::default() });
    assert_eq!(after.aggregates, sums(0..30));
    assert_eq!(after.pages, before.pages);
    let status = bench.status(id).await;
    assert!(status.finished_ms >= Some(status.created_ms));
}

pub(crate) async fn once(bench: Bench) {
    let id = settled(&bench, 5, &[]).await;
    assert_eq!(bench.finalize(&[id]).await.len(), 1);
    let before = bench.observe(id).await;
    assert_eq!(bench.finalize(&[id]).await, []);
    assert_eq!(bench.observe(id).await, before);
}

pub(crate) async fn once_by_many_at_the_same_time(bench: Bench) {
    let ids = [settled(&bench, 5, &[]).await, settled(&bench, 5, &[1]).await];
    let finalizer = |n: usize| {
        let bench = bench.clone();
        // In either order: nobody may wait for the other in a circle.
        let ids = if n.is_multiple_of(2) { ids } else { [ids[1], ids[0]] };
        async move { bench.finalize(&ids).await }
    };
    let mut closed: Vec<_> = at_once(8, finalizer).await.into_iter().flatten().collect();
    closed.sort_by_key(|finalized| finalized.batch);
    let states = [BatchState::Completed, BatchState::CompletedWithFailures];
    let expected = [0, 1].map(|n| Finalized { batch: ids[n], state: states[n] });
    assert_eq!(closed, expected);
    assert_eq!(bench.aggregates(ids[0]).await, sums(0..5));
    assert_eq!(bench.aggregates(ids[1]).await, sums([0, 2, 3, 4]));
}

pub(crate) async fn the_settled_among_others(bench: Bench) {
    let (one, two) = (settled(&bench, 5, &[]).await, settled(&bench, 3, &[]).await);
    let open = bench.submit(1).await;
    let mut closed = bench.finalize(&[open, NO_BATCH, two, one]).await;
    closed.sort_by_key(|finalized| finalized.batch);
    let expected = [one, two].map(|batch| Finalized { batch, state: BatchState::Completed });
    assert_eq!(closed, expected);
    assert_eq!(bench.state(open).await, BatchState::Running);
}

pub(crate) async fn dead_runs_make_it_completed_with_failures(bench: Bench) {
    let id = settled(&bench, 10, &[3, 4]).await;
    assert_eq!(bench.finalize(&[id]).await, closed(id, BatchState::CompletedWithFailures));
    let seen = bench.observe(id).await;
    assert_eq!((seen.progress.completed, seen.progress.dead), (8, 2));
    assert_eq!(seen.exceptions.len(), 2);
    assert_eq!(seen.aggregates, sums([0, 1, 2, 5, 6, 7, 8, 9]));
}

pub(crate) async fn a_batch_without_any_success_is_closed(bench: Bench) {
    let id = bench.submit(2).await;
    let lease = bench.claim_one(2).await;
    let settlement = bench.settlement([Work::all(&lease).dead(0).dead(1)]);
    let without = Settlement { totals: Vec::new(), ..settlement };
    assert_eq!(bench.send(without).await, Settled::Applied);
    assert_eq!(bench.finalize(&[id]).await, closed(id, BatchState::CompletedWithFailures));
    assert_eq!(bench.aggregates(id).await, Aggregates::default());
    assert_eq!(bench.pages(id).await, []);
}

pub(crate) async fn retried_it_is_finalized_anew(bench: Bench) {
    let id = settled(&bench, 10, &[3, 4]).await;
    bench.finalize(&[id]).await;
    assert_eq!(bench.store.retry(id, 0).await.expect("retry").runs, 2);
    let seen = bench.observe(id).await;
    assert_eq!((seen.state, seen.finished), (BatchState::Running, false));
    assert_eq!(bench.finalize(&[id]).await, []);
    let lease = bench.claim_one(10).await;
    assert_eq!(retries(&lease), [(3, 0), (4, 0)]);
    bench.apply([Work::all(&lease).dead(4)]).await;
    assert_eq!(bench.finalize(&[id]).await, closed(id, BatchState::CompletedWithFailures));
    bench.store.retry(id, 0).await.expect("retry");
    bench.work_off(10).await;
    assert_eq!(bench.finalize(&[id]).await, closed(id, BatchState::Completed));
    let seen = bench.observe(id).await;
    assert_eq!(seen.aggregates, sums(0..10));
    assert_eq!((seen.exceptions.len(), seen.progress.completed), (0, 10));
}

pub(crate) async fn a_settlement_sent_again_after_the_end_is_applied(bench: Bench) {
    let id = bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    let settlement = bench.settlement([Work::all(&lease).dead(1)]);
    bench.send(settlement.clone()).await;
    bench.finalize(&[id]).await;
    let before = bench.observe(id).await;
    assert_eq!(bench.send(settlement).await, Settled::Applied);
    assert_eq!(bench.observe(id).await, before);
}

pub(crate) async fn a_worker_that_goes_on_after_a_retry_counts_nothing_twice(bench: Bench) {
    let id = bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    let first = bench.settlement([Work::all(&lease).dead(1)]);
    bench.send(first.clone()).await;
    bench.finalize(&[id]).await;
    bench.store.retry(id, 0).await.expect("retry");
    let lease = bench.claim_one(5).await;
    let mut next = bench.settlement([Work::all(&lease)]);
    next.totals = first.totals;
    next.totals[0].before = next.totals[0].sequence;
    next.totals[0].sequence += 1;
    next.totals[0].body = sums(0..5).encode();
    assert_eq!(bench.send(next).await, Settled::Applied);
    assert_eq!(bench.finalize(&[id]).await, closed(id, BatchState::Completed));
    assert_eq!(bench.aggregates(id).await, sums(0..5));
}

pub(crate) async fn not_a_cancelled_batch(bench: Bench) {
    let id = settled(&bench, 5, &[]).await;
    bench.store.cancel(id).await.expect("cancel");
    assert_eq!(bench.finalize(&[id]).await, []);
    assert_eq!(bench.state(id).await, BatchState::Cancelled);
    assert_eq!(bench.aggregates(id).await, sums(0..5));
}

/// Works until no batch is open: every fifth lease is lost at once, every seventeenth run fails
/// twice. Returns what it finalized.
async fn worker(bench: Bench) -> Vec<Finalized> {
    let mut closed = Vec::new();
    for turn in 1_u64.. {
        let lease = if turn.is_multiple_of(5) { AT_ONCE } else { LATER };
        let claim = bench.ask(ClaimRequest { lease, ..ask(2, 20) }).await;
        if claim.open == 0 {
            break;
        }
        for lease in &claim.leases {
            if bench.settle([act(lease)]).await != Settled::Applied {
                bench.give_back(std::slice::from_ref(lease)).await; // it is alive
            }
        }
        closed.extend(bench.finalize(&claim.settled).await);
    }
    closed
}

fn act(lease: &Lease) -> Work {
    let items = (0..lease.items.len()).map(|n| lease.items.nth(n));
    let failing = items.filter(|item| item.index % 17 == 0 && item.attempts < 2);
    failing.fold(Work::all(lease), |work, item| work.retry(item.index, Duration::ZERO))
}

pub(crate) async fn workers_that_lose_leases_finish_a_batch_once(bench: Bench) {
    // None of them ends, however many are slow at the same time.
    let retry = RetryPolicy { max_attempts: 1_000, ..RetryPolicy::default() };
    let id = bench.submit_batch(NewBatch { retry, ..new_batch(1_000) }).await.id;
    let finalized: Vec<_> =
        at_once(4, |_| worker(bench.clone())).await.into_iter().flatten().collect();
    assert_eq!(finalized, closed(id, BatchState::Completed));
    let seen = bench.observe(id).await;
    assert_eq!(seen.progress.completed, 1_000);
    assert_eq!(seen.aggregates, sums(0..1_000));
    let entries = seen.pages.iter().flat_map(|page| page.entries().expect("sound pages"));
    let mut indexes: Vec<u64> = entries.map(|(index, _)| index).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, (0..1_000).collect::<Vec<_>>());
}
