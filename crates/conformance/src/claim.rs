//! Claiming: what is leased, in which order, and what else the answer says.

use crate::{
    harness::{AT_ONCE, Bench, LATER, ask, at_once, new_batch, snapshot},
    work::{Work, range, retries},
};
use std::{collections::BTreeSet, time::Duration};
use tidegate_core::{
    Batch, BatchId, Lease, Range,
    claim::{ClaimRequest, Length, Lengths},
    limits::MAX_LEASES_PER_CLAIM,
    settle::Settlement,
    submit::NewBatch,
};

/// Panics unless the ranges cover `[0, runs)`, each index once.
fn assert_covers(mut ranges: Vec<Range>, runs: u64) {
    ranges.sort_unstable();
    let end = ranges.iter().fold(0, |end, range| {
        assert_eq!(range.lo, end, "{ranges:?}");
        assert!(!range.is_empty());
        range.hi
    });
    assert_eq!(end, runs);
}

fn count(leases: &[Lease], batch: BatchId) -> usize {
    leases.iter().filter(|lease| lease.batch == batch).count()
}

pub(crate) async fn fresh_ranges_cover_every_run_once(bench: Bench) {
    bench.submit(103).await;
    let mut ranges = Vec::new();
    loop {
        let leases = bench.claim(3, 10).await;
        if leases.is_empty() {
            break;
        }
        assert!(leases.iter().all(|lease| range(lease).len() <= 10));
        ranges.extend(leases.iter().map(range));
    }
    assert_covers(ranges, 103);
}

pub(crate) async fn concurrent_claimers_never_overlap(bench: Bench) {
    bench.submit(2_000).await;
    let claimer = |_| {
        let bench = bench.clone();
        async move {
            let mut mine: Vec<Lease> = Vec::new();
            loop {
                let leases = bench.claim(2, 23).await;
                if leases.is_empty() {
                    return mine;
                }
                mine.extend(leases);
            }
        }
    };
    let leases: Vec<Lease> = at_once(8, claimer).await.into_iter().flatten().collect();
    let fences: BTreeSet<_> = leases.iter().map(|lease| lease.fence).collect();
    assert_eq!(fences.len(), leases.len());
    assert_covers(leases.iter().map(range).collect(), 2_000);
}

pub(crate) async fn a_lease_that_lasts_is_not_claimed_again(bench: Bench) {
    bench.submit(5).await;
    assert_eq!(bench.claim(4, 5).await.len(), 1);
    assert!(bench.claim(4, 5).await.is_empty());
}

pub(crate) async fn expired_come_before_due_before_fresh(bench: Bench) {
    bench.submit(40).await;
    let leases = bench.claim_expired(2, 5).await;
    bench.apply([Work::all(&leases[1]).retry(7, AT_ONCE)]).await;
    let claimed = bench.claim(3, 5).await;
    assert_eq!(range(&claimed[0]), Range::new(0, 5));
    assert_eq!(retries(&claimed[1]), [(7, 1)]);
    assert_eq!(range(&claimed[2]), Range::new(10, 15));
}

pub(crate) async fn the_first_in_order_get_the_only_slot(bench: Bench) {
    bench.submit(40).await;
    let leases = bench.claim_expired(2, 5).await;
    bench.apply([Work::all(&leases[1]).retry(7, AT_ONCE)]).await;
    assert_eq!(range(&bench.claim_one(5).await), Range::new(0, 5));
    assert_eq!(retries(&bench.claim_one(5).await), [(7, 1)]);
    assert_eq!(range(&bench.claim_one(5).await), Range::new(10, 15));
}

pub(crate) async fn an_expired_lease_goes_on_where_it_was_settled(bench: Bench) {
    bench.submit(10).await;
    let lost = bench.claim_one(10).await;
    let settlement = bench.settlement([Work::some(&lost, 0, 4)]);
    bench.send(Settlement { lease: AT_ONCE, ..settlement }).await;
    let found = bench.claim_one(3).await;
    assert_eq!(range(&found), Range::new(4, 10));
    assert!(found.fence > lost.fence);
}

pub(crate) async fn a_small_batch_is_not_stuck_behind_a_huge_one(bench: Bench) {
    let huge = bench.submit(1_000_000).await;
    assert_eq!(bench.claim(6, 10).await.len(), 6);
    let small = bench.submit(1_000).await;
    assert_eq!(count(&bench.claim(4, 10).await, small), 4);
    let leases = bench.claim(4, 10).await;
    assert_eq!((count(&leases, huge), count(&leases, small)), (1, 3));
}

pub(crate) async fn equal_batches_share_evenly(bench: Bench) {
    let ids = [bench.submit(500).await, bench.submit(500).await, bench.submit(500).await];
    let leases = bench.claim(6, 10).await;
    assert_eq!(ids.map(|id| count(&leases, id)), [2, 2, 2]);
}

pub(crate) async fn expired_leases_just_claimed_count_in_the_sharing(bench: Bench) {
    let one = bench.submit(1_000).await;
    bench.claim_expired(3, 10).await;
    let two = bench.submit(1_000).await;
    let leases = bench.claim(6, 10).await;
    assert_eq!((count(&leases, one), count(&leases, two)), (3, 3));
}

pub(crate) async fn ranges_shrink_near_the_end(bench: Bench) {
    bench.submit(10_000).await;
    let lengths = Lengths { unknown: Length { most: 4_000, least: 5 }, known: Vec::new() };
    let mut ranges: Vec<Range> = Vec::new();
    loop {
        let request = ClaimRequest { lengths: lengths.clone(), ..ask(1, 1) };
        let Some(lease) = bench.ask(request).await.leases.pop() else { break };
        ranges.push(range(&lease));
    }
    assert_eq!(ranges[0].len(), 4_000);
    assert!(ranges.is_sorted_by(|a, b| a.len() >= b.len()), "{ranges:?}");
    let (last, others) = ranges.split_last().expect("there are ranges");
    assert!(last.len() <= 5 && others.iter().all(|range| range.len() >= 5), "{ranges:?}");
    assert_covers(ranges, 10_000);
}

pub(crate) async fn lengths_go_by_batch(bench: Bench) {
    let (one, two) = (bench.submit(1_000).await, bench.submit(1_000).await);
    let known = vec![(two, Length { most: 7, least: 7 })];
    let unknown = Length { most: 30, least: 30 };
    let request = ClaimRequest { lengths: Lengths { unknown, known }, ..ask(2, 1) };
    let leases = bench.ask(request).await.leases;
    let length = |id| leases.iter().find(|lease| lease.batch == id).map(|lease| lease.items.len());
    assert_eq!((length(one), length(two)), (Some(30), Some(7)));
}

pub(crate) async fn only_the_workloads_asked_for_are_claimed(bench: Bench) {
    let other = NewBatch { workload: "another".to_owned(), ..new_batch(10) };
    let other = bench.submit_batch(other).await.id;
    let mine = bench.submit(10).await;
    let claim = bench.ask(ask(4, 5)).await;
    assert_eq!((count(&claim.leases, mine), claim.leases.len(), claim.open), (2, 2, 1));
    let workloads = vec!["another".to_owned(), "a third".to_owned()];
    let claim = bench.ask(ClaimRequest { workloads, ..ask(4, 5) }).await;
    assert_eq!((count(&claim.leases, other), claim.leases.len(), claim.open), (2, 2, 1));
    let claim = bench.ask(ClaimRequest { workloads: Vec::new(), ..ask(4, 5) }).await;
    assert_eq!((claim.leases.len(), claim.open, claim.next_due), (0, 0, None));
}

pub(crate) async fn only_the_batch_asked_for_is_claimed(bench: Bench) {
    let (one, two) = (bench.submit(10).await, bench.submit(10).await);
    let only = |id| ClaimRequest { only: Some(id), ..ask(4, 5) };
    let claim = bench.ask(only(two)).await;
    assert_eq!((count(&claim.leases, two), claim.leases.len(), claim.open), (2, 2, 1));
    let claim = bench.ask(only(two)).await;
    assert_eq!((claim.leases.len(), claim.open), (0, 1));
    let claim = bench.ask(ClaimRequest { slots: 0, ..only(one) }).await;
    assert_eq!(claim.next_due, None, "the leases of the other batch do not count");
}

pub(crate) async fn slots_bound_the_leases(bench: Bench) {
    bench.submit(10_000).await;
    assert!(bench.claim(0, 1).await.is_empty());
    assert_eq!(bench.claim(3, 1).await.len(), 3);
    assert_eq!(bench.claim(usize::MAX, 1).await.len(), MAX_LEASES_PER_CLAIM);
}

pub(crate) async fn slots_bound_retries_and_expired_too(bench: Bench) {
    bench.submit(30).await;
    let leases = bench.claim_expired(4, 5).await;
    let failing = (15..20).fold(Work::all(&leases[3]), |work, index| work.retry(index, AT_ONCE));
    bench.apply([failing]).await;
    assert_eq!(bench.claim(2, 1).await.len(), 2);
    let leases = bench.claim(3, 1).await;
    assert_eq!(range(&leases[0]).len(), 5);
    assert_eq!((retries(&leases[1]), retries(&leases[2])), (vec![(15, 1)], vec![(16, 1)]));
}

pub(crate) async fn the_answer_has_the_batches_and_unknown_snapshots_of_its_leases(bench: Bench) {
    let other = snapshot("[2]");
    let one = bench.submit_batch(new_batch(10)).await;
    let two = bench.submit_batch(NewBatch { snapshot: other.clone(), ..new_batch(10) }).await;
    let claim = bench.ask(ask(4, 5)).await;
    let mut batches = claim.batches;
    batches.sort_by_key(|batch: &Batch| batch.id);
    assert_eq!(batches, [one.clone(), two.clone()]);
    assert_eq!(claim.snapshots.len(), 2);

    bench.give_back(&claim.leases).await;
    let known = vec![one.snapshot];
    let claim = bench.ask(ClaimRequest { known, ..ask(4, 5) }).await;
    assert_eq!((claim.batches.len(), claim.snapshots), (2, vec![other]));

    let claim = bench.ask(ask(4, 5)).await;
    assert_eq!((claim.batches.len(), claim.snapshots.len()), (0, 0));
}

pub(crate) async fn open_and_settled_count_what_is_asked_for(bench: Bench) {
    let look = || bench.ask(ask(0, 1));
    let claim = look().await;
    assert_eq!((claim.open, claim.settled), (0, vec![]));
    let id = bench.submit(1).await;
    let claim = look().await;
    assert_eq!((claim.open, claim.settled), (1, vec![]));
    let lease = bench.claim_one(1).await;
    assert_eq!(look().await.settled, []);
    bench.apply([Work::all(&lease)]).await;
    let claim = look().await;
    assert_eq!((claim.open, claim.settled), (1, vec![id]));
    bench.finalize(&[id]).await;
    let claim = look().await;
    assert_eq!((claim.open, claim.settled), (0, vec![]));
}

pub(crate) async fn next_due_is_the_next_expiry_or_retry(bench: Bench) {
    let soon = |due: Option<Duration>| due.is_some_and(|due| due < LATER / 2);
    let later = |due: Option<Duration>| due.is_some_and(|due| due > LATER / 2 && due <= LATER);
    let due = async || bench.ask(ask(0, 1)).await.next_due;
    bench.submit(3).await;
    assert_eq!(due().await, None);
    let first = bench.ask(ask(1, 1)).await;
    assert!(later(first.next_due), "a claim counts its own leases: {:?}", first.next_due);
    bench.apply([Work::all(&first.leases[0]).retry(0, LATER)]).await;
    assert!(later(due().await));
    let expired = bench.claim_expired(1, 1).await;
    assert!(soon(due().await));
    bench.apply([Work::all(&expired[0]).dead(1)]).await;
    assert!(later(due().await), "the dead are not due");
    let last = bench.claim_one(1).await;
    bench.apply([Work::all(&last).retry(2, AT_ONCE)]).await;
    assert!(soon(due().await));
}

pub(crate) async fn fences_grow(bench: Bench) {
    bench.submit(100).await;
    let mut last = tidegate_core::Fence::NOBODY;
    for _ in 0..5 {
        let leases = bench.claim_expired(2, 5).await;
        assert_eq!(leases.len(), 2);
        assert_ne!(leases[0].fence, leases[1].fence);
        assert!(leases.iter().all(|lease| lease.fence > last));
        last = leases.iter().map(|lease| lease.fence).max().expect("there are two");
    }
}

pub(crate) async fn many_small_batches_are_claimed_together(bench: Bench) {
    for _ in 0..40 {
        bench.submit(1).await;
    }
    let claim = bench.ask(ask(64, 100)).await;
    assert_eq!((claim.leases.len(), claim.batches.len(), claim.open), (40, 40, 40));
}
