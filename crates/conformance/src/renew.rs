//! Renewing leases and giving them back.

use crate::{
    harness::{AT_ONCE, Bench, LATER, NO_BATCH},
    settle::{lost_and_found, retry_lease},
    work::{Work, range, rest, retries},
};
use std::slice::from_ref;
use tidegate_core::{Lease, Range, settle::Settled};

pub(crate) async fn a_renewed_lease_lasts(bench: Bench) {
    bench.submit(10).await;
    let leases = bench.claim_expired(2, 5).await;
    assert_eq!(bench.renew(&leases, LATER).await, []);
    assert!(bench.claim(4, 5).await.is_empty());
    bench.apply(leases.iter().map(Work::all)).await;
}

pub(crate) async fn a_lease_lasts_as_long_as_the_renewal_says(bench: Bench) {
    bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    assert_eq!(bench.renew(from_ref(&lease), AT_ONCE).await, []);
    assert_eq!(bench.claim_one(5).await.items, lease.items);
}

pub(crate) async fn retries_are_renewed(bench: Bench) {
    let lease = retry_lease(&bench, 3).await;
    assert_eq!(bench.renew(from_ref(&lease), AT_ONCE).await, []);
    assert_eq!(bench.renew(from_ref(&lease), LATER).await, []);
    assert!(bench.claim(4, 3).await.is_empty());
    bench.apply([Work::all(&lease)]).await;
}

pub(crate) async fn what_is_left_of_a_lease_is_renewed(bench: Bench) {
    let failing = retry_lease(&bench, 4).await;
    bench.submit(4).await;
    let lease = bench.claim_one(4).await;
    bench.apply([Work::some(&failing, 0, 2), Work::some(&lease, 0, 2)]).await;
    let left = [rest(&failing, 2), rest(&lease, 2)];
    assert_eq!(bench.renew(&left, AT_ONCE).await, []);
    assert_eq!(bench.renew(&left, LATER).await, []);
    assert!(bench.claim(4, 4).await.is_empty());
    bench.apply([Work::some(&failing, 2, 4), Work::some(&lease, 2, 4)]).await;
}

pub(crate) async fn lost_leases_are_named_and_the_others_renewed(bench: Bench) {
    let (lost, _) = lost_and_found(&bench, 5).await;
    bench.submit(10).await;
    let [held, settled] = bench.claim_expired(2, 5).await.try_into().expect("two ranges");
    bench.apply([Work::all(&settled)]).await;
    let nowhere = Lease { batch: NO_BATCH, ..held.clone() };
    let leases = [lost.clone(), held.clone(), settled.clone()];
    let mut named = bench.renew(&leases, LATER).await;
    named.sort_unstable();
    let mut expected = [lost.fence, settled.fence];
    expected.sort_unstable();
    assert_eq!(named, expected);
    assert_eq!(bench.renew(from_ref(&nowhere), LATER).await, [nowhere.fence]);
    assert!(bench.claim(4, 5).await.is_empty());
}

pub(crate) async fn a_lost_retry_lease_is_not_renewed(bench: Bench) {
    let lost = retry_lease(&bench, 3).await;
    bench.renew(from_ref(&lost), AT_ONCE).await;
    let found = bench.claim_one(3).await;
    assert_eq!(bench.renew(from_ref(&lost), AT_ONCE).await, [lost.fence]);
    assert!(bench.claim(4, 3).await.is_empty(), "the new lease lasts as long as before");
    bench.apply([Work::all(&found)]).await;
}

pub(crate) async fn a_lost_lease_shortens_no_other(bench: Bench) {
    let (lost, found) = lost_and_found(&bench, 5).await;
    assert_eq!(bench.renew(from_ref(&lost), AT_ONCE).await, [lost.fence]);
    bench.give_back(from_ref(&lost)).await;
    assert!(bench.claim(4, 5).await.is_empty());
    bench.apply([Work::all(&found)]).await;
}

pub(crate) async fn given_back_it_can_be_claimed_at_once(bench: Bench) {
    let failing = retry_lease(&bench, 3).await;
    bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    bench.give_back(&[failing.clone(), lease.clone()]).await;
    let again = bench.claim(2, 5).await;
    assert_eq!(again.len(), 2);
    assert_eq!(range(&again[0]), range(&lease));
    assert_eq!(retries(&again[1]), [(0, 1), (1, 1), (2, 1)], "no attempt was used");
    assert!(again.iter().all(|lease| lease.fence > failing.fence));
}

pub(crate) async fn what_is_left_of_a_lease_is_given_back(bench: Bench) {
    let failing = retry_lease(&bench, 3).await;
    let id = bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    bench.apply([Work::some(&failing, 0, 1), Work::some(&lease, 0, 2)]).await;
    bench.give_back(&[rest(&failing, 1), rest(&lease, 2)]).await;
    let again = bench.claim(2, 5).await;
    assert_eq!(range(&again[0]), Range::new(2, 5));
    assert_eq!(retries(&again[1]), [(1, 1), (2, 1)]);
    assert_eq!(bench.progress(id).await.completed, 2);
}

pub(crate) async fn given_back_and_claimed_by_another_it_is_lost(bench: Bench) {
    bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    bench.give_back(from_ref(&lease)).await;
    let other = bench.claim_one(5).await;
    assert_eq!(bench.settle([Work::all(&lease)]).await, Settled::Late(vec![lease.fence]));
    bench.apply([Work::all(&other)]).await;
}

pub(crate) async fn what_is_settled_or_unknown_is_passed_over(bench: Bench) {
    let id = bench.submit(5).await;
    let lease = bench.claim_one(5).await;
    bench.apply([Work::all(&lease)]).await;
    let before = bench.observe(id).await;
    bench.give_back(&[lease.clone(), Lease { batch: NO_BATCH, ..lease }]).await;
    assert_eq!(bench.observe(id).await, before);
    assert!(bench.claim(4, 5).await.is_empty());
}

pub(crate) async fn nothing_to_do_is_done(bench: Bench) {
    assert_eq!(bench.renew(&[], LATER).await, []);
    bench.give_back(&[]).await;
    assert_eq!(bench.finalize(&[]).await, []);
}
