//! A relay notices when the store is not where it left it (law 16).

use super::{
    bench::Bench,
    relay::{Relay, ids, retry},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER};
use tidegate_core::{
    Kind, MessageId,
    outbox::{Epoch, Settlement, StuckState},
};

/// Sends a settlement that does not fit, and sees that it changes nothing.
async fn is_refused(bench: &Bench, settlement: Settlement) {
    let before = seen(bench).await;
    let refused = bench.store.settle_messages(settlement).await.expect_err("it does not fit");
    assert_eq!(refused.kind(), Kind::WentBack, "{refused}");
    assert_eq!(seen(bench).await, before);
}

/// Everything that a settlement could change.
async fn seen(bench: &Bench) -> (Vec<(MessageId, StuckState)>, Vec<u64>) {
    let topics = bench.outbox().await.topics;
    (bench.states().await, topics.iter().map(|topic| topic.outstanding).collect())
}

/// Whatever the numbers are: only the last one and the next one fit.
pub(crate) async fn a_settlement_that_skips_a_number_is_refused(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("k"), Some("l")]).await;
    for taken in 0..3 {
        for skipped in [1, 2, 1 << 40] {
            let mut step = relay.step().aside(&read[0], retry(AT_ONCE));
            step.settlement.number += skipped;
            let settlement = step.build();
            is_refused(&bench, settlement).await;
            relay.number -= 1;
        }
        relay.step().to(read[taken].position).send().await;
    }
}

/// Its lanes are leased anew, and it goes on from what is stored.
pub(crate) async fn a_relay_that_starts_afresh_goes_on(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("k"), Some("l")]).await;
    relay.step().to(read[0].position).send().await;
    relay.number += 5;
    let settlement = relay.step().to(read[2].position).build();
    is_refused(&bench, settlement.clone()).await;
    relay.lanes.clear();
    let shared = relay.share(LATER).await;
    assert_eq!(shared.gained.len(), 64);
    assert!(shared.gained.iter().all(|gained| gained.cursor == read[0].position.0), "{shared:?}");
    let again: Vec<_> = relay.read().await.iter().map(|message| message.id.clone()).collect();
    assert_eq!(again, [read[1].id.clone(), read[2].id.clone()]);
    assert_eq!(bench.settle_messages(settlement).await.late.len(), 64, "it has old fences");
    relay.step().to(read[2].position).send().await;
    assert_eq!(relay.read().await, []);
}

/// A relay that knows the store from another epoch reads nothing and settles nothing.
pub(crate) async fn another_epoch_is_noticed(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("l")]).await;
    relay.step().to(read[0].position).send().await;
    let present = std::mem::replace(&mut relay.epoch, Epoch("of another life".to_owned()));
    let asked = bench.store.claim_messages(relay.asking(vec![relay.reader()])).await;
    let refused = asked.expect_err("it is from another epoch");
    assert_eq!(refused.kind(), Kind::WentBack, "{refused}");
    let settlement = relay.step().to(read[1].position).aside(&read[1], retry(AT_ONCE)).build();
    is_refused(&bench, settlement).await;
    (relay.epoch, relay.number) = (present, 1);
    relay.lanes.values_mut().for_each(|held| held.cursor = read[0].position.0);
    assert_eq!(relay.read().await.len(), 1);
}

/// Whatever a relay holds from another epoch, and whether it has settled there or not: it gets its lanes anew, from
/// what is stored, and what it held proves nothing.
pub(crate) async fn lanes_of_another_epoch_are_not_renewed(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("l"), Some("k")]).await;
    for settled in [None, Some(0), Some(1)] {
        if let Some(place) = settled {
            relay.step().to(read[place].position).send().await;
        }
        let stored = settled.map_or(0, |place: usize| read[place].position.0);
        let mut twin = Relay::new(&bench, "a");
        (twin.lanes, twin.epoch) = (relay.lanes.clone(), relay.epoch.clone());
        twin.number = relay.number;
        // It is further than the store.
        relay.lanes.values_mut().for_each(|held| held.cursor = read[2].position.0);
        relay.epoch = Epoch("of another life".to_owned());
        let shared = relay.share(LATER).await;
        assert_eq!((shared.lost.len(), shared.gained.len()), (64, 64));
        assert!(shared.gained.iter().all(|gained| gained.cursor == stored), "{shared:?}");
        let left = read
            .iter()
            .filter(|message| message.position.0 > stored)
            .map(|message| message.id.clone());
        assert_eq!(ids(&relay.read().await), left.collect::<Vec<_>>());
        let late = twin.step().to(read[2].position).build();
        assert_eq!(bench.settle_messages(late).await.late.len(), 64, "its fences are old");
    }
}

/// Nothing of a settlement was taken whose lanes are all somebody else's: the next one has its number.
pub(crate) async fn a_settlement_of_lost_lanes_has_no_number(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("l")]).await;
    let mut twin = Relay::new(&bench, "a");
    (twin.lanes, twin.epoch) = (relay.lanes.clone(), relay.epoch.clone());
    relay.step().to(read[0].position).send().await;
    relay.lanes.clear();
    assert_eq!(relay.share(LATER).await.gained.len(), 64);
    twin.number = 7;
    let late = twin.step().to(read[1].position).build();
    assert_eq!(bench.settle_messages(late).await.late.len(), 64);
    relay.step().to(read[1].position).send().await;
}
