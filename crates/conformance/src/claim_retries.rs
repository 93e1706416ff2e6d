//! Claiming runs that failed before.

use crate::{
    harness::{AT_ONCE, Bench, LATER, at_once},
    work::{Work, retries},
};
use tidegate_core::{Lease, limits::MAX_RETRIES_PER_LEASE};

pub(crate) async fn due_retries_are_grouped_and_leased_once(bench: Bench) {
    bench.submit(10).await;
    let lease = bench.claim_one(10).await;
    let failing = [9, 1, 3, 5, 7].into_iter().fold(Work::all(&lease), |w, i| w.retry(i, AT_ONCE));
    bench.apply([failing]).await;
    let leases = bench.claim(3, 2).await;
    let groups: Vec<_> = leases.iter().map(retries).collect();
    assert_eq!(groups, [vec![(1, 1), (3, 1)], vec![(5, 1), (7, 1)], vec![(9, 1)]]);
    assert!(bench.claim(8, 2).await.is_empty());
}

pub(crate) async fn due_retries_are_spread_over_the_slots(bench: Bench) {
    bench.submit(20).await;
    let lease = bench.claim_one(20).await;
    bench.apply([(0..20).fold(Work::all(&lease), |w, i| w.retry(i, AT_ONCE))]).await;
    let lengths: Vec<_> = bench.claim(3, 20).await.iter().map(|l| l.items.len()).collect();
    assert_eq!(lengths, [7, 7, 6]);
}

pub(crate) async fn concurrent_claimers_share_retries_without_overlap(bench: Bench) {
    bench.submit(300).await;
    let lease = bench.claim_one(300).await;
    bench.apply([(0..300).fold(Work::all(&lease), |w, i| w.retry(i, AT_ONCE))]).await;
    let claimer = |_| {
        let bench = bench.clone();
        async move { bench.claim(16, 10).await }
    };
    let leases = at_once(8, claimer).await.into_iter().flatten();
    let mut indexes: Vec<u64> = leases.flat_map(|l| retries(&l)).map(|(i, _)| i).collect();
    // A claimer may pass over what another is just taking; that is then left for the next claim.
    let left = bench.claim(64, 10).await;
    indexes.extend(left.iter().flat_map(retries).map(|(index, _)| index));
    indexes.sort_unstable();
    assert_eq!(indexes, (0..300).collect::<Vec<_>>());
}

pub(crate) async fn retries_that_are_not_due_are_not_claimed(bench: Bench) {
    bench.submit(2).await;
    let lease = bench.claim_one(2).await;
    bench.apply([Work::all(&lease).retry(0, LATER).retry(1, AT_ONCE)]).await;
    assert_eq!(retries(&bench.claim_one(2).await), [(1, 1)]);
    assert!(bench.claim(4, 2).await.is_empty());
}

pub(crate) async fn an_expired_retry_lease_is_claimed_again(bench: Bench) {
    bench.submit(3).await;
    let lease = bench.claim_one(3).await;
    bench.apply([Work::all(&lease).retry(0, AT_ONCE).retry(2, AT_ONCE)]).await;
    let lost = bench.claim_expired(1, 3).await;
    let found = bench.claim_one(3).await;
    assert_eq!(retries(&found), [(0, 1), (2, 1)]);
    assert!(found.fence > lost[0].fence);
}

pub(crate) async fn the_dead_are_not_claimed(bench: Bench) {
    bench.submit(1).await;
    let lease = bench.claim_one(1).await;
    bench.apply([Work::all(&lease).dead(0)]).await;
    assert!(bench.claim(4, 1).await.is_empty());
}

pub(crate) async fn retries_per_lease_are_bounded(bench: Bench) {
    let runs = MAX_RETRIES_PER_LEASE + 10;
    bench.submit(runs).await;
    let lease = bench.claim_one(runs).await;
    bench.apply([(0..runs).fold(Work::all(&lease), |w, i| w.retry(i, AT_ONCE))]).await;
    let lengths = |leases: Vec<Lease>| leases.iter().map(|l| l.items.len()).collect::<Vec<_>>();
    assert_eq!(lengths(bench.claim(1, runs).await), [MAX_RETRIES_PER_LEASE]);
    assert_eq!(lengths(bench.claim(1, runs).await), [10]);
}
