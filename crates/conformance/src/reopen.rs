//! Durable stores: what one handle has written, another one finds.

use crate::{
    harness::{Bench, at_once},
    work::{Work, range, sums},
};
use tidegate_core::{BatchState, migrate::Schema, settle::Settled};

pub(crate) async fn what_is_settled_is_found_again(bench: Bench) {
    let id = bench.submit(10).await;
    let lease = bench.claim_one(6).await;
    bench.apply([Work::some(&lease, 0, 4).dead(2)]).await;
    let before = bench.observe(id).await;
    let again = bench.reopen().await;
    assert_eq!(again.store.schema().await.expect("read the schema"), Schema::Current);
    drop(bench);
    assert_eq!(again.observe(id).await, before);
    again.apply([Work::some(&lease, 4, 6)]).await;
    assert_eq!(again.aggregates(id).await, sums([0, 1, 3, 4, 5]));
}

pub(crate) async fn fences_go_on_growing(bench: Bench) {
    bench.submit(10).await;
    let lost = bench.claim_expired(1, 10).await.remove(0);
    let again = bench.reopen().await;
    let found = again.claim_one(10).await;
    assert!(found.fence > lost.fence);
    assert_eq!(bench.settle([Work::all(&lost)]).await, Settled::Late(vec![lost.fence]));
    again.apply([Work::all(&found)]).await;
}

pub(crate) async fn handles_share_a_batch_without_overlap(bench: Bench) {
    let id = bench.submit(500).await;
    let handles = [bench.clone(), bench.reopen().await, bench.reopen().await];
    let worker = |n: usize| {
        let bench = handles[n].clone();
        async move {
            loop {
                let leases = bench.claim(2, 10).await;
                if leases.is_empty() {
                    return;
                }
                assert!(leases.iter().all(|lease| range(lease).len() <= 10));
                bench.apply(leases.iter().map(Work::all)).await;
            }
        }
    };
    at_once(3, worker).await;
    assert_eq!(bench.aggregates(id).await, sums(0..500));
    let finalizer = |n: usize| {
        let bench = handles[n].clone();
        async move { bench.finalize(&[id]).await.len() }
    };
    assert_eq!(at_once(3, finalizer).await.iter().sum::<usize>(), 1);
    assert_eq!(bench.state(id).await, BatchState::Completed);
}
