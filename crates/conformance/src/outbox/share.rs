//! Lanes for relays: each lane has one, and each relay its even share.

use super::{
    bench::Bench,
    relay::{Relay, new_message, retry},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER, at_once};
use std::collections::BTreeSet;
use tidegate_core::{
    WorkerId,
    outbox::{LANES, Lane, Position, RelayStatus, Relays, Settlement},
};

const ALL: usize = LANES as usize;

pub(crate) async fn the_first_relay_gets_all_lanes(bench: Bench) {
    let mut relay = Relay::new(&bench, "a");
    let shared = relay.share(LATER).await;
    assert_eq!((shared.gained.len(), shared.surplus, shared.relays), (ALL, 0, 1));
    assert!(shared.lost.is_empty());
    let lanes: BTreeSet<Lane> = shared.gained.iter().map(|gained| gained.lease.lane).collect();
    assert_eq!(lanes, Lane::all().collect());
    for gained in shared.gained {
        assert!(gained.cursor == 0 || !bench.is_log());
        assert!(gained.lags.is_empty() && gained.held.is_empty() && gained.aside.is_empty());
    }
    let again = relay.share(LATER).await;
    assert_eq!((again.gained.len(), again.lost.len(), again.surplus), (0, 0, 0), "it has them");
}

pub(crate) async fn shares_are_even_as_relays_come_and_go(bench: Bench) {
    let mut relays = vec![Relay::start(&bench, "a").await];
    for (name, share) in [("b", 32), ("c", 22), ("d", 16)] {
        let mut new = Relay::new(&bench, name);
        let shared = new.share(LATER).await;
        assert_eq!((shared.gained.len(), shared.relays), (0, relays.len() + 1), "none is free");
        for relay in &mut relays {
            let surplus = relay.share(LATER).await.surplus;
            assert_eq!(surplus, relay.lanes.len() - share);
            relay.give_back(surplus, false).await;
        }
        assert!(new.share(LATER).await.gained.len() <= share);
        relays.push(new);
    }
    let counts: Vec<usize> = relays.iter().map(|relay| relay.lanes.len()).collect();
    assert_eq!((counts.iter().sum::<usize>(), counts.iter().max()), (ALL, Some(&16)), "{counts:?}");
    while let Some(gone) = relays.pop() {
        gone.end().await;
        let share = ALL.div_ceil(relays.len().max(1));
        for relay in &mut relays {
            assert_eq!(relay.share(LATER).await.surplus, 0);
            assert!(relay.lanes.len() <= share);
        }
        let held: usize = relays.iter().map(|relay| relay.lanes.len()).sum();
        assert!(relays.is_empty() || held == ALL, "nobody has {} lanes", ALL - held);
    }
}

pub(crate) async fn relays_at_the_same_time_never_get_the_same_lane(bench: Bench) {
    let join = |n: usize| {
        let bench = bench.clone();
        async move {
            let mut relay = Relay::new(&bench, &format!("relay {n}"));
            for _ in 0..20 {
                let surplus = relay.share(LATER).await.surplus;
                relay.give_back(surplus, false).await;
            }
            relay
        }
    };
    let mut relays = at_once(4, join).await;
    for _ in 0..2 {
        for relay in &mut relays {
            let shared = relay.share(LATER).await;
            assert!(shared.lost.is_empty(), "it had them for long");
            relay.give_back(shared.surplus, false).await;
        }
    }
    let lanes: Vec<Lane> = relays.iter().flat_map(|relay| relay.lanes.keys().copied()).collect();
    assert_eq!(lanes.len(), ALL);
    assert_eq!(lanes.into_iter().collect::<BTreeSet<_>>().len(), ALL);
}

pub(crate) async fn what_expired_goes_to_another_and_is_lost(bench: Bench) {
    let mut gone = Relay::new(&bench, "a");
    gone.share(AT_ONCE).await;
    let mut other = Relay::new(&bench, "b");
    let shared = other.take_over().await;
    assert_eq!((shared.gained.len(), shared.relays), (ALL, 1), "the first is not counted any more");
    let newest = gone.lanes.values().map(|held| held.fence).max();
    assert!(other.lanes.values().all(|held| Some(held.fence) > newest), "fences grow");
    let shared = gone.share(LATER).await;
    assert_eq!((shared.gained.len(), shared.lost.len(), shared.relays), (0, ALL, 2));
    assert_eq!(other.share(LATER).await.lost, []);
}

pub(crate) async fn what_expired_and_nobody_took_is_kept(bench: Bench) {
    let mut relay = Relay::new(&bench, "a");
    relay.share(AT_ONCE).await;
    let fences: Vec<_> = relay.leases();
    for lease in [AT_ONCE, LATER] {
        let shared = relay.share(lease).await;
        assert_eq!((shared.gained.len(), shared.lost.len()), (0, 0), "nobody else asked");
    }
    assert_eq!(relay.leases(), fences);
    assert_eq!(Relay::new(&bench, "b").share(LATER).await.gained.len(), 0, "it lasts now");
}

/// So many ids are drawn that lanes can pass some.
async fn publish_ten(bench: &Bench) {
    bench.publish(vec![new_message("t", None); 10]).await;
}

pub(crate) async fn a_settlement_leaves_leases_as_they_are(bench: Bench) {
    publish_ten(&bench).await;
    let mut relay = Relay::new(&bench, "a");
    relay.share(AT_ONCE).await;
    relay.step().to(Position(7)).send().await;
    let shared = Relay::new(&bench, "b").take_over().await;
    assert_eq!(shared.gained.len(), ALL, "only sharing renews them");
    assert!(
        shared.gained.iter().all(|it| it.cursor == 7 || !bench.is_log()),
        "what was settled is kept"
    );
}

pub(crate) async fn a_relay_that_starts_anew_under_its_name_goes_on(bench: Bench) {
    publish_ten(&bench).await;
    let mut relay = Relay::new(&bench, "a");
    relay.share(LATER).await;
    relay.step().to(Position(3)).send().await;
    relay.give_back(10, false).await;
    relay.share(AT_ONCE).await;
    relay.step().to(Position(5)).send().await;
    for life in 1..3 {
        let mut relay = Relay::new(&bench, "a");
        let shared = relay.share(AT_ONCE).await;
        let before = 4 + life;
        assert!(
            shared.gained.iter().all(|it| it.cursor == before || !bench.is_log()),
            "{shared:?}"
        );
        relay.step().to(Position(5 + life)).send().await;
        assert_eq!(shared.gained.len(), ALL);
    }
}

/// An answer that did not arrive has given lanes to a relay that lives on.
pub(crate) async fn what_a_relay_does_not_know_of_is_free(bench: Bench) {
    publish_ten(&bench).await;
    let mut relay = Relay::start(&bench, "a").await;
    let mut other = Relay::new(&bench, "b");
    assert_eq!(other.share(LATER).await.gained.len(), 0);
    let settlement = relay.step().to(Position(7)).build();
    bench.settle_messages(settlement.clone()).await;
    let before = relay.lanes.clone();
    relay.lanes.retain(|lane, _| lane.0 < 10);
    let shared = relay.share(LATER).await;
    assert_eq!((shared.gained.len(), shared.lost.len(), shared.surplus), (22, 0, 0));
    for gained in &shared.gained {
        assert!(gained.cursor == 7 || !bench.is_log());
        assert!(gained.lease.fence > before[&gained.lease.lane].fence, "fences grow");
    }
    let shared = other.share(LATER).await;
    assert_eq!(shared.gained.len(), 32, "it does not need them");
    assert!(shared.gained.iter().all(|gained| gained.cursor == 7 || !bench.is_log()));
    assert_eq!(bench.settle_messages(settlement).await.late.len(), ALL - 10);
}

/// A relay that stood still for too long, while another one took its own share only.
pub(crate) async fn what_a_dead_relay_had_and_nobody_took_is_kept(bench: Bench) {
    let mut relay = Relay::start(&bench, "a").await;
    assert_eq!(Relay::new(&bench, "b").share(LATER).await.relays, 2);
    relay.share(AT_ONCE).await;
    let fences = relay.leases();
    let shared = Relay::new(&bench, "c").take_over().await;
    assert_eq!((shared.gained.len(), shared.relays), (32, 2));
    let shared = relay.share(LATER).await;
    assert_eq!((shared.gained.len(), shared.lost.len(), shared.relays), (0, 32, 3));
    assert_eq!(relay.leases(), fences[32..]);
}

pub(crate) async fn given_back_lanes_are_free_at_once(bench: Bench) {
    let mut relay = Relay::start(&bench, "a").await;
    let given = relay.leases();
    relay.give_back(10, false).await;
    let mut other = Relay::new(&bench, "b");
    assert_eq!(other.share(LATER).await.gained.len(), 10);
    let lanes: Vec<Lane> = other.lanes.keys().copied().collect();
    assert_eq!(lanes, given[..10].iter().map(|lease| lease.lane).collect::<Vec<_>>());

    let mut late = Relay::new(&bench, "a");
    late.lanes = relay.lanes.clone();
    for lease in &given[..10] {
        let mut held = relay.lanes.values().next().expect("it has more").clone();
        held.fence = lease.fence;
        late.lanes.insert(lease.lane, held);
    }
    late.give_back(usize::MAX, false).await;
    assert_eq!(other.share(LATER).await.lost, [], "what was lost is passed over");
    assert_eq!(Relay::new(&bench, "c").share(LATER).await.gained.len(), ALL.div_ceil(3));
}

pub(crate) async fn what_arrives_after_a_lane_was_given_back_is_late(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k")]).await;
    let settlement = relay.step().aside(&read[0], retry(LATER)).build();
    let mut late = Relay::new(&bench, "a");
    late.lanes = relay.lanes.clone();
    relay.end().await;
    assert_eq!(bench.settle_messages(settlement).await.late.len(), ALL);
    assert_eq!(bench.states().await, [], "nothing is set aside");
    let mut other = Relay::new(&bench, "b");
    assert_eq!(other.share(LATER).await.gained.len(), ALL, "nothing was leased again");
    assert_eq!(late.share(LATER).await.lost.len(), ALL);
}

pub(crate) async fn a_relay_that_ends_is_not_counted(bench: Bench) {
    let first = Relay::start(&bench, "a").await;
    let mut second = Relay::new(&bench, "b");
    assert_eq!(second.share(LATER).await.relays, 2);
    let status = |relay: &str, lanes| RelayStatus { relay: WorkerId(relay.to_owned()), lanes };
    // Where one relay has all lanes, only that one is shown.
    let standing_by = bench.capabilities().relays == Relays::Many;
    let both = [status("a", 64)].into_iter().chain(standing_by.then(|| status("b", 0)));
    assert_eq!(bench.outbox().await.relays, both.collect::<Vec<_>>());
    first.end().await;
    let second_alone = standing_by.then(|| status("b", 0));
    assert_eq!(bench.outbox().await.relays, Vec::from_iter(second_alone));
    let shared = second.share(LATER).await;
    assert_eq!((shared.relays, shared.gained.len()), (1, ALL));
    assert_eq!(bench.outbox().await.relays, [status("b", 64)]);
}

pub(crate) async fn nothing_to_give_back_or_settle_is_fine(bench: Bench) {
    let mut relay = Relay::new(&bench, "a");
    relay.give_back(0, false).await;
    relay.give_back(0, true).await;
    let settled = bench.settle_messages(Settlement::default()).await;
    assert!(settled.late.is_empty() && settled.freed.is_empty());
}
