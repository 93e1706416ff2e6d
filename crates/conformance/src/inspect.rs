//! Reading for people: listings in pages, and numbers that add up.

use crate::{
    harness::{AT_ONCE, Bench, LATER, NO_BATCH, snapshot},
    work::{Work, page, sums},
};
use tidegate_core::{
    Aggregates, BatchId, BatchState, ExceptionState,
    inspect::{BatchQuery, ExceptionQuery, PageQuery},
};

async fn ids(bench: &Bench, query: BatchQuery) -> Vec<BatchId> {
    bench.list(query).await.into_iter().map(|status| status.batch.id).collect()
}

pub(crate) async fn batches_are_listed_newest_first_in_pages(bench: Bench) {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.insert(0, bench.submit(1).await);
    }
    assert_eq!(ids(&bench, BatchQuery::newest(10)).await, all);
    assert_eq!(ids(&bench, BatchQuery::newest(usize::MAX)).await, all);
    assert_eq!(ids(&bench, BatchQuery::newest(0)).await, []);
    assert_eq!(ids(&bench, BatchQuery::newest(2)).await, all[..2]);
    let next = BatchQuery { before: Some(all[1]), ..BatchQuery::newest(2) };
    assert_eq!(ids(&bench, next).await, all[2..4]);
    let last = BatchQuery { before: Some(all[3]), ..BatchQuery::newest(2) };
    assert_eq!(ids(&bench, last).await, all[4..]);
}

pub(crate) async fn batches_are_listed_by_state(bench: Bench) {
    let completed = bench.submit(1).await;
    bench.work_off(1).await;
    let failed = bench.submit(1).await;
    let lease = bench.claim_one(1).await;
    bench.apply([Work::all(&lease).dead(0)]).await;
    bench.finalize(&[completed, failed]).await;
    let cancelled = bench.submit(1).await;
    bench.store.cancel(cancelled).await.expect("cancel");
    let running = bench.submit(1).await;
    for (state, id) in [
        (BatchState::Completed, completed),
        (BatchState::CompletedWithFailures, failed),
        (BatchState::Cancelled, cancelled),
        (BatchState::Running, running),
    ] {
        let query = BatchQuery { state: Some(state), ..BatchQuery::newest(10) };
        assert_eq!(ids(&bench, query).await, [id]);
        let one = BatchQuery { state: Some(state), ..BatchQuery::one(running) };
        assert_eq!(ids(&bench, one).await.len(), usize::from(id == running));
    }
}

pub(crate) async fn exceptions_are_listed_in_pages(bench: Bench) {
    let batch = bench.submit(10).await;
    let lease = bench.claim_one(10).await;
    let retried = [1, 5, 9].into_iter().fold(Work::all(&lease), |w, i| w.retry(i, LATER));
    bench.apply([[3, 7].into_iter().fold(retried, Work::dead)]).await;
    let list = async |state, from, limit| {
        let query = ExceptionQuery { batch, state, from, limit };
        let rows = bench.store.exceptions(query).await.expect("list exceptions");
        assert!(rows.iter().all(|row| row.batch == batch));
        rows.into_iter().map(|row| row.index).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 0, usize::MAX).await, [1, 3, 5, 7, 9]);
    assert_eq!(list(None, 3, 2).await, [3, 5]);
    assert_eq!(list(None, 6, 10).await, [7, 9]);
    assert_eq!(list(Some(ExceptionState::Dead), 0, 10).await, [3, 7]);
    assert_eq!(list(Some(ExceptionState::Retry), 2, 1).await, [5]);
    assert!(list(None, 10, 10).await.is_empty());
}

pub(crate) async fn pages_are_listed_by_their_lowest_index(bench: Bench) {
    let batch = bench.submit(40).await;
    let leases = bench.claim(4, 10).await;
    // Settled out of order, and one page that does not begin where its range does.
    let works = [3, 0, 2, 1].map(|n| Work::all(&leases[n]).retry(20, AT_ONCE));
    for work in works {
        bench.apply([work]).await;
    }
    let list_beyond = async |from, beyond, limit| {
        let query = PageQuery { batch, from, beyond, limit };
        let pages = bench.store.pages(query).await.expect("list pages");
        pages.into_iter().map(|page| page.range.lo).collect::<Vec<_>>()
    };
    let list = async |from, limit| list_beyond(from, 0, limit).await;
    assert_eq!(list_beyond(0, 29, 10).await, [21, 30]);
    assert_eq!(list_beyond(0, 30, 10).await, [30]);
    assert_eq!(list(0, usize::MAX).await, [0, 10, 21, 30]);
    assert_eq!(list(1, 2).await, [10, 21]);
    assert_eq!(list(21, 10).await, [21, 30]);
    assert_eq!(list(22, 10).await, [30]);
    let lease = bench.claim_one(10).await;
    bench.apply([Work::all(&lease)]).await;
    assert_eq!(list(0, 10).await, [0, 10, 20, 21, 30]);
    assert_eq!(bench.pages(batch).await[2], page(&[20]).expect("one result"));
}

pub(crate) async fn progress_always_adds_up(bench: Bench) {
    let id = bench.submit(50).await;
    let adds_up = async |completed, dead, retrying, leased| {
        let seen = bench.progress(id).await;
        let counts = [seen.completed, seen.dead, seen.retrying, seen.leased];
        assert_eq!(counts, [completed, dead, retrying, leased]);
        assert_eq!(counts.iter().sum::<u64>() + seen.untouched, 50);
    };
    adds_up(0, 0, 0, 0).await;
    let leases = bench.claim_expired(2, 10).await;
    // Whoever had them is gone.
    adds_up(0, 0, 0, 0).await;
    // It was not: a settlement renews its lease.
    bench.apply([Work::some(&leases[0], 0, 6).dead(1).retry(2, AT_ONCE)]).await;
    adds_up(4, 1, 1, 4).await;
    let claimed = bench.claim(3, 10).await;
    adds_up(4, 1, 1, 24).await;
    bench.apply(claimed.iter().map(Work::all)).await;
    adds_up(4 + 10 + 1 + 10, 1, 0, 4).await;
    bench.apply([Work::some(&leases[0], 6, 10)]).await;
    adds_up(29, 1, 0, 0).await;
    bench.store.retry(id, 0).await.expect("retry");
    adds_up(29, 0, 1, 0).await;
}

pub(crate) async fn what_was_given_back_is_leased_by_nobody(bench: Bench) {
    let id = bench.submit(50).await;
    let leases = bench.claim(2, 10).await;
    let [first, second] = &leases[..] else { panic!("two leases: {leases:?}") };
    bench.apply([Work::some(first, 0, 4)]).await;
    assert_eq!(bench.progress(id).await.leased, 16);
    bench.store.give_back(vec![second.clone()]).await.expect("give back");
    let progress = bench.progress(id).await;
    assert_eq!((progress.completed, progress.leased, progress.untouched), (4, 6, 40));
}

pub(crate) async fn aggregates_are_seen_while_a_batch_runs(bench: Bench) {
    let id = bench.submit(20).await;
    assert_eq!(bench.aggregates(id).await, Aggregates::default());
    let leases = bench.claim(2, 10).await;
    bench.apply([Work::some(&leases[0], 0, 3)]).await;
    assert_eq!(bench.aggregates(id).await, sums(0..3));
    bench.apply([Work::all(&leases[1])]).await;
    assert_eq!(bench.aggregates(id).await, sums((0..3).chain(10..20)));
}

pub(crate) async fn what_is_not_there_is_empty(bench: Bench) {
    assert!(ids(&bench, BatchQuery::one(NO_BATCH)).await.is_empty());
    assert_eq!(bench.aggregates(NO_BATCH).await, Aggregates::default());
    assert_eq!(bench.exceptions(NO_BATCH).await, []);
    assert_eq!(bench.pages(NO_BATCH).await, []);
    let hash = snapshot("never stored").hash();
    assert_eq!(bench.store.snapshot(hash).await.expect("read a snapshot"), None);
}
