//! Settlements build on what the store has of their worker, or change nothing.

use crate::{
    harness::Bench,
    work::{Work, sums},
};
use tidegate_core::{
    Lease,
    settle::{AccumulatorId, Settled, Settlement, Total},
};

const WORKER: AccumulatorId = AccumulatorId(4_711);

/// The runs from the `from`th to before the `to`th, by one worker, whose sum is then that of all
/// runs from the first to there.
fn link(
    bench: &Bench,
    lease: &Lease,
    (from, to): (u64, u64),
    (before, sequence): (i64, i64),
) -> Settlement {
    let body = sums(0..to).encode();
    let total = Total { batch: lease.batch, accumulator: WORKER, before, sequence, body };
    let settlement = bench.settlement([Work::some(lease, from, to)]);
    Settlement { totals: vec![total], ..settlement }
}

pub(crate) async fn what_does_not_follow_the_last_one_is_forgotten(bench: Bench) {
    let id = bench.submit(10).await;
    let lease = bench.claim_one(10).await;
    let strange = [(5, 6), (6, 5), (i64::MAX - 1, i64::MAX), (i64::MIN, i64::MIN + 1)];
    for numbers in strange {
        let settlement = link(&bench, &lease, (0, 2), numbers);
        assert_eq!(bench.send(settlement).await, Settled::Forgotten(vec![id]), "{numbers:?}");
    }
    assert_eq!(bench.send(link(&bench, &lease, (0, 2), (0, 5))).await, Settled::Applied);
    let before = bench.observe(id).await;
    for numbers in [(0, 6), (4, 6), (6, 7), (7, 6), (0, 4), (4, 4)] {
        let settlement = link(&bench, &lease, (2, 4), numbers);
        assert_eq!(bench.send(settlement).await, Settled::Forgotten(vec![id]), "{numbers:?}");
        assert_eq!(bench.observe(id).await, before);
    }
    assert_eq!(bench.send(link(&bench, &lease, (2, 4), (5, 9))).await, Settled::Applied);
    assert_eq!(bench.aggregates(id).await, sums(0..4));
}

pub(crate) async fn a_late_copy_of_an_earlier_settlement_is_not_applied(bench: Bench) {
    let id = bench.submit(10).await;
    let lease = bench.claim_one(10).await;
    let first = link(&bench, &lease, (0, 2), (0, 1));
    assert_eq!(bench.send(first.clone()).await, Settled::Applied);
    assert_eq!(bench.send(link(&bench, &lease, (2, 4), (1, 2))).await, Settled::Applied);
    let before = bench.observe(id).await;
    assert_eq!(bench.send(first).await, Settled::Forgotten(vec![id]));
    assert_eq!(bench.observe(id).await, before);
}

pub(crate) async fn one_forgotten_batch_keeps_the_others_from_being_settled(bench: Bench) {
    let ids = [bench.submit(5).await, bench.submit(5).await];
    let leases = bench.claim(2, 5).await;
    let mut settlement = bench.settlement(leases.iter().map(Work::all));
    settlement.totals[1].before = 7;
    let forgotten = settlement.totals[1].batch;
    assert_eq!(bench.send(settlement).await, Settled::Forgotten(vec![forgotten]));
    for id in ids {
        assert_eq!(bench.progress(id).await.completed, 0);
    }
}

pub(crate) async fn begun_anew_it_counts_nothing_twice(bench: Bench) {
    let id = bench.submit(10).await;
    let lease = bench.claim_one(10).await;
    assert_eq!(bench.send(link(&bench, &lease, (0, 4), (0, 1))).await, Settled::Applied);
    // As if the store had lost the settlement before.
    let next = link(&bench, &lease, (4, 7), (2, 3));
    assert_eq!(bench.send(next).await, Settled::Forgotten(vec![id]));
    bench.apply([Work::some(&lease, 4, 7)]).await;
    bench.apply([Work::some(&lease, 7, 10)]).await;
    bench.finalize(&[id]).await;
    assert_eq!(bench.aggregates(id).await, sums(0..10));
}
