//! Settling while others settle, claim or cancel the same runs.

use crate::{
    harness::{Bench, ask, at_once},
    work::{Work, range, sums},
};
use tidegate_core::{BatchState, claim::ClaimRequest, settle::Settled};

const ROUNDS: usize = 10;

pub(crate) async fn of_settlers_with_one_fence_one_is_applied(bench: Bench) {
    let id = bench.submit(20).await;
    let lease = bench.claim_one(20).await;
    let settler = |_| {
        let settlement = bench.settlement([Work::all(&lease).dead(7)]);
        let bench = bench.clone();
        async move { bench.send(settlement).await }
    };
    let answers = at_once(8, settler).await;
    let applied = answers.iter().filter(|answer| **answer == Settled::Applied).count();
    assert_eq!(applied, 1, "{answers:?}");
    assert_eq!(bench.aggregates(id).await, sums((0..20).filter(|index| *index != 7)));
}

pub(crate) async fn one_settlement_sent_by_two_is_applied_once(bench: Bench) {
    let id = bench.submit(20).await;
    let lease = bench.claim_one(20).await;
    let settlement = bench.settlement([Work::some(&lease, 0, 5)]);
    let settler = |_| {
        let (bench, settlement) = (bench.clone(), settlement.clone());
        async move { bench.send(settlement).await }
    };
    let answers = at_once(4, settler).await;
    assert!(answers.iter().all(|answer| *answer == Settled::Applied), "{answers:?}");
    assert_eq!(bench.progress(id).await.completed, 5);
    assert_eq!(bench.aggregates(id).await, sums(0..5));
}

pub(crate) async fn a_settler_or_the_next_claimer_has_the_range_never_both(bench: Bench) {
    for _ in 0..ROUNDS {
        let id = bench.submit(8).await;
        let request = ClaimRequest { only: Some(id), ..ask(1, 8) };
        let expired = ClaimRequest { lease: crate::harness::AT_ONCE, ..request.clone() };
        let lease = bench.ask(expired).await.leases.remove(0);
        let settling = bench.settle([Work::all(&lease)]);
        let (settled, claim) = tokio::join!(settling, bench.ask(request));
        match settled {
            Settled::Applied => assert!(claim.leases.is_empty()),
            Settled::Late(_) => {
                assert_eq!(range(&claim.leases[0]), range(&lease));
                bench.apply([Work::all(&claim.leases[0])]).await;
            }
            forgotten => panic!("{forgotten:?}"),
        }
        assert_eq!(bench.aggregates(id).await, sums(0..8));
    }
}

pub(crate) async fn a_cancellation_comes_before_or_after_a_settlement(bench: Bench) {
    for _ in 0..ROUNDS {
        let id = bench.submit(8).await;
        let lease = bench.claim_one(8).await;
        let settling = bench.settle([Work::some(&lease, 0, 3)]);
        let (settled, cancelled) = tokio::join!(settling, bench.store.cancel(id));
        cancelled.expect("it was running");
        let completed = if settled == Settled::Applied { 3 } else { 0 };
        let seen = bench.observe(id).await;
        assert_eq!((seen.state, seen.progress.completed), (BatchState::Cancelled, completed));
        assert_eq!(seen.aggregates, sums(0..completed));
    }
}

pub(crate) async fn settlements_in_opposite_order_do_not_block_each_other(bench: Bench) {
    for _ in 0..ROUNDS {
        let ids = [bench.submit(8).await, bench.submit(8).await];
        let leases = bench.claim(2, 4).await;
        let others = bench.claim(2, 4).await;
        let forth = bench.settle(leases.iter().map(Work::all));
        let back = bench.settle(others.iter().rev().map(Work::all));
        assert_eq!(tokio::join!(forth, back), (Settled::Applied, Settled::Applied));
        for id in ids {
            assert_eq!(bench.aggregates(id).await, sums(0..8));
        }
    }
}
