//! Settling: all or nothing, under the fence of the lease.

use crate::{
    harness::{AT_ONCE, Bench, LATER, NO_BATCH, ask},
    work::{Work, page, range, reason, rest, retries, successes, sums},
};
use tidegate_core::{
    Exception, ExceptionState, Items, Lease, Page, Range, RetryItem,
    inspect::Progress,
    limits::MAX_PAGE_BYTES,
    settle::{AccumulatorId, Settled, Settlement, Total},
};

/// A batch whose only lease was lost to another worker: the old lease and the new one.
pub(crate) async fn lost_and_found(bench: &Bench, runs: u64) -> (Lease, Lease) {
    bench.submit(runs).await;
    let [lost] = bench.claim_expired(1, runs).await.try_into().expect("one range");
    (lost, bench.claim_one(runs).await)
}

/// One lease of all runs of a new batch, which have all failed once.
pub(crate) async fn retry_lease(bench: &Bench, runs: u64) -> Lease {
    bench.submit(runs).await;
    let lease = bench.claim_one(runs).await;
    bench.apply([(0..runs).fold(Work::all(&lease), |work, i| work.retry(i, AT_ONCE))]).await;
    bench.claim_one(runs).await
}

pub(crate) async fn everything_is_written(bench: Bench) {
    let id = bench.submit(10).await;
    let lease = bench.claim_one(6).await;
    bench.apply([Work::all(&lease).retry(2, LATER).dead(4)]).await;
    let seen = bench.observe(id).await;
    let expected = Progress { completed: 4, dead: 1, retrying: 1, leased: 0, untouched: 4 };
    assert_eq!(seen.progress, expected);
    assert_eq!(seen.pages, [page(&[0, 1, 3, 5]).expect("four results")]);
    assert_eq!(seen.aggregates, sums([0, 1, 3, 5]));
    let exception =
        |index, state| Exception { batch: id, index, attempts: 1, state, reason: reason(index, 1) };
    let expected = [exception(2, ExceptionState::Retry), exception(4, ExceptionState::Dead)];
    assert_eq!(seen.exceptions, expected);
}

pub(crate) async fn many_leases_of_many_batches_settle_together(bench: Bench) {
    let failing = retry_lease(&bench, 3).await;
    let (one, two) = (bench.submit(20).await, bench.submit(20).await);
    let leases = bench.claim(4, 10).await;
    let mut works: Vec<_> = leases.iter().map(Work::all).collect();
    works.push(Work::all(&failing));
    bench.apply(works).await;
    for (id, runs) in [(failing.batch, 3), (one, 20), (two, 20)] {
        assert_eq!(bench.progress(id).await.completed, runs);
        assert_eq!(bench.aggregates(id).await, sums(0..runs));
    }
    assert_eq!(bench.ask(ask(1, 1)).await.settled.len(), 3);
}

pub(crate) async fn a_range_is_settled_step_by_step(bench: Bench) {
    let id = bench.submit(10).await;
    let lease = bench.claim_one(10).await;
    for (from, to) in [(0, 4), (4, 9)] {
        bench.apply([Work::some(&lease, from, to)]).await;
        let progress = bench.progress(id).await;
        assert_eq!((progress.completed, progress.leased), (to, 10 - to));
    }
    bench.apply([Work::some(&lease, 9, 10)]).await;
    assert_eq!(bench.progress(id).await, Progress { completed: 10, ..Progress::default() });
    assert_eq!(bench.aggregates(id).await, sums(0..10));
}

pub(crate) async fn progress_renews_what_is_left(bench: Bench) {
    bench.submit(10).await;
    let leases = bench.claim_expired(1, 10).await;
    bench.apply([Work::some(&leases[0], 0, 4)]).await;
    assert!(bench.claim(4, 10).await.is_empty());
}

pub(crate) async fn one_late_part_and_nothing_changes(bench: Bench) {
    let (lost, found) = lost_and_found(&bench, 10).await;
    let other = bench.submit(10).await;
    let held = bench.claim_one(10).await;
    let before = (bench.observe(found.batch).await, bench.observe(other).await);
    let late = [Work::all(&held).dead(3), Work::all(&lost).retry(5, AT_ONCE)];
    assert_eq!(bench.settle(late).await, Settled::Late(vec![lost.fence]));
    assert_eq!(before, (bench.observe(found.batch).await, bench.observe(other).await));
    bench.apply([Work::all(&held), Work::all(&found)]).await;
    assert_eq!(bench.aggregates(found.batch).await, sums(0..10));
}

pub(crate) async fn every_late_part_is_named(bench: Bench) {
    let (one, _) = lost_and_found(&bench, 10).await;
    let (two, held) = lost_and_found(&bench, 10).await;
    let works = [Work::all(&one), Work::some(&held, 0, 5), Work::all(&two)];
    let Settled::Late(mut fences) = bench.settle(works).await else { panic!("two were lost") };
    fences.sort_unstable();
    let mut lost = [one.fence, two.fence];
    lost.sort_unstable();
    assert_eq!(fences, lost);
}

pub(crate) async fn a_worker_that_found_its_own_lost_lease_is_late_with_both(bench: Bench) {
    let (lost, found) = lost_and_found(&bench, 10).await;
    let expired = retry_lease(&bench, 3).await;
    bench.renew(std::slice::from_ref(&expired), AT_ONCE).await;
    let again = bench.claim_one(3).await;
    for (lost, found) in [(lost, found), (expired, again)] {
        let works = [Work::all(&found), Work::all(&lost)];
        assert_eq!(bench.settle(works).await, Settled::Late(vec![lost.fence]));
        bench.apply([Work::all(&found)]).await;
    }
}

pub(crate) async fn a_lost_retry_lease_is_late(bench: Bench) {
    let given = retry_lease(&bench, 3).await;
    bench.give_back(&[given]).await;
    let lost = bench.claim_expired(1, 3).await.pop().expect("they were given back");
    let found = bench.claim_one(3).await;
    let before = bench.observe(found.batch).await;
    assert_eq!(bench.settle([Work::all(&lost)]).await, Settled::Late(vec![lost.fence]));
    assert_eq!(bench.observe(found.batch).await, before);
    bench.apply([Work::all(&found)]).await;
}

pub(crate) async fn an_expired_lease_that_nobody_took_is_not_lost(bench: Bench) {
    let id = bench.submit(10).await;
    let leases = bench.claim_expired(1, 10).await;
    bench.apply([Work::all(&leases[0])]).await;
    assert_eq!(bench.progress(id).await.completed, 10);
}

pub(crate) async fn sent_again_it_is_applied_and_changes_nothing(bench: Bench) {
    let id = bench.submit(10).await;
    let lease = bench.claim_one(10).await;
    let first = bench.settlement([Work::some(&lease, 0, 4).retry(2, AT_ONCE).dead(3)]);
    let last = bench.settlement([Work::some(&lease, 4, 10)]);
    for settlement in [first.clone(), last.clone()] {
        assert_eq!(bench.send(settlement).await, Settled::Applied);
    }
    let held = bench.claim_one(1).await;
    let before = bench.observe(id).await;
    for settlement in [last, first] {
        assert_eq!(bench.send(settlement).await, Settled::Applied);
    }
    assert_eq!(bench.observe(id).await, before);
    bench.apply([Work::all(&held)]).await;
}

pub(crate) async fn a_retry_settlement_sent_again_is_applied(bench: Bench) {
    let lease = retry_lease(&bench, 3).await;
    let settlement = bench.settlement([Work::all(&lease).retry(1, LATER)]);
    assert_eq!(bench.send(settlement.clone()).await, Settled::Applied);
    let before = bench.observe(lease.batch).await;
    assert_eq!(bench.send(settlement).await, Settled::Applied);
    assert_eq!(bench.observe(lease.batch).await, before);
}

pub(crate) async fn a_worker_overwrites_its_own_aggregates(bench: Bench) {
    let id = bench.submit(10).await;
    let lease = bench.claim_one(10).await;
    bench.apply([Work::some(&lease, 0, 2)]).await;
    for (sequence, (from, to)) in [(1, (2, 5)), (2, (5, 10))] {
        let body = sums(2..to).encode();
        let accumulator = AccumulatorId(i64::MAX);
        let total = Total { batch: id, accumulator, before: sequence - 1, sequence, body };
        let settlement = bench.settlement([Work::some(&lease, from, to)]);
        let settlement = Settlement { totals: vec![total], ..settlement };
        assert_eq!(bench.send(settlement).await, Settled::Applied);
        assert_eq!(bench.aggregates(id).await, sums(0..to));
    }
}

pub(crate) async fn a_range_that_does_not_fit_is_late(bench: Bench) {
    let id = bench.submit(20).await;
    let lease = bench.claim_one(10).await;
    bench.apply([Work::some(&lease, 0, 4)]).await;
    let before = bench.observe(id).await;
    let longer = Lease { items: Items::Range(Range::new(4, 12)), ..lease.clone() };
    let repeated = Work::some(&lease, 0, 4);
    let skipping = Work::some(&lease, 6, 10);
    for work in [repeated, skipping, Work::all(&longer)] {
        assert_eq!(bench.settle([work]).await, Settled::Late(vec![lease.fence]));
        assert_eq!(bench.observe(id).await, before);
    }
    bench.apply([Work::some(&lease, 4, 10)]).await;
}

pub(crate) async fn retries_that_are_not_leased_are_late(bench: Bench) {
    let lease = retry_lease(&bench, 3).await;
    let item = |index| RetryItem { index, attempts: 1 };
    let stranger = Items::Retries(vec![item(1), item(77)]);
    let stranger = Lease { items: stranger, ..lease.clone() };
    let before = bench.observe(lease.batch).await;
    assert_eq!(bench.settle([Work::all(&stranger)]).await, Settled::Late(vec![lease.fence]));
    assert_eq!(bench.observe(lease.batch).await, before);
}

pub(crate) async fn a_batch_that_is_not_there_is_late(bench: Bench) {
    bench.submit(5).await;
    let lease = Lease { batch: NO_BATCH, ..bench.claim_one(5).await };
    assert_eq!(bench.settle([Work::all(&lease)]).await, Settled::Late(vec![lease.fence]));
}

pub(crate) async fn a_retry_that_succeeds_is_no_exception_any_more(bench: Bench) {
    let lease = retry_lease(&bench, 3).await;
    bench.apply([Work::all(&lease)]).await;
    let seen = bench.observe(lease.batch).await;
    assert_eq!(seen.exceptions, []);
    assert_eq!(seen.progress.completed, 3);
    assert_eq!(seen.pages, [page(&[0, 1, 2]).expect("three results")]);
}

pub(crate) async fn a_retry_that_fails_is_updated(bench: Bench) {
    let lease = retry_lease(&bench, 3).await;
    bench.apply([Work::all(&lease).retry(0, AT_ONCE).dead(2)]).await;
    let exceptions = bench.exceptions(lease.batch).await;
    let seen: Vec<_> = exceptions.iter().map(|e| (e.index, e.attempts, e.state)).collect();
    assert_eq!(seen, [(0, 2, ExceptionState::Retry), (2, 2, ExceptionState::Dead)]);
    assert_eq!(exceptions[0].reason, reason(0, 2));
    assert_eq!(retries(&bench.claim_one(3).await), [(0, 2)]);
}

pub(crate) async fn the_rest_of_a_retry_lease_stays_held(bench: Bench) {
    let lease = retry_lease(&bench, 3).await;
    bench.renew(std::slice::from_ref(&lease), AT_ONCE).await;
    bench.apply([Work::some(&lease, 0, 1)]).await;
    assert!(bench.claim(4, 3).await.is_empty(), "settling renews what is left");
    let settlement = bench.settlement([Work::some(&lease, 1, 2).retry(1, LATER)]);
    bench.send(Settlement { lease: AT_ONCE, ..settlement }).await;
    let found = bench.claim_one(3).await;
    assert_eq!(retries(&found), [(2, 1)]);
    let late = bench.settle([Work::all(&rest(&lease, 2))]).await;
    assert_eq!(late, Settled::Late(vec![lease.fence]));
}

pub(crate) async fn pages_survive_to_the_letter(bench: Bench) {
    let id = bench.submit(40).await;
    let leases = bench.claim(4, 10).await;
    let text = r#"[{"b":1.0,"a":"it's \"é\" \\ \u0000 🎲", "a":null},1e400, -0.0,[]]"#;
    let dense = Page { range: Range::new(0, 4), indexes: None, results: text.to_owned() };
    let indexes = Some(vec![10, 12, 13, 19]);
    let sparse = Page { range: Range::new(10, 20), indexes, results: text.to_owned() };
    let kept = [Some(dense), None, Some(sparse), None];
    let places = [0, 2, 1, 3];
    let works = places.iter().zip(&kept).map(|(n, page)| Work::all(&leases[*n]).page(page.clone()));
    bench.apply(works).await;
    assert_eq!(bench.pages(id).await, kept.into_iter().flatten().collect::<Vec<_>>());
    assert_eq!(bench.aggregates(id).await, sums(0..40));
}

pub(crate) async fn a_large_page_survives(bench: Bench) {
    let id = bench.submit(1).await;
    let lease = bench.claim_one(1).await;
    let results = format!("[\"{}\"]", "é".repeat(MAX_PAGE_BYTES / 2));
    let large = Page { range: Range::new(0, 1), indexes: None, results };
    bench.apply([Work::all(&lease).page(Some(large.clone()))]).await;
    assert!(bench.pages(id).await == [large]);
}

pub(crate) async fn a_thousand_failures_settle_at_once(bench: Bench) {
    let lease = retry_lease(&bench, 1_000).await;
    let odd = (0..500).map(|n| 2 * n + 1);
    bench.apply([odd.fold(Work::all(&lease), |work, index| work.dead(index))]).await;
    let progress = bench.progress(lease.batch).await;
    assert_eq!((progress.completed, progress.dead, progress.retrying), (500, 500, 0));
}

pub(crate) async fn indexes_beyond_32_bits_survive(bench: Bench) {
    const FAR: u64 = 10_000_000_000;
    let id = bench.submit(FAR + 5).await;
    let leases = bench.claim(1_024, FAR / 1_000).await;
    let last = leases.last().expect("there are leases");
    assert_eq!(range(last), Range::new(FAR, FAR + 5));
    let work = Work::all(last).retry(FAR + 1, AT_ONCE);
    let done = successes(&work.clone().part());
    bench.apply([work]).await;
    assert_eq!(bench.pages(id).await, [page(&done).expect("four results")]);
    assert_eq!(bench.progress(id).await.leased, FAR);
    assert_eq!(retries(&bench.claim_one(1).await), [(FAR + 1, 1)]);
}
