//! Bad items inside large groups, in a sink that does not tell which they are.

use crate::{
    DEADLINE,
    history::{Findings, History},
    plan,
    sink::Recorder,
    support::{Database, POSTGRES},
    writers::message,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use tidegate_core::{
    InspectOutbox, Publish, WorkerId,
    outbox::{StuckQuery, StuckState},
};
use tidegate_engine::{Relay, RelayOptions, Stop};

const THOUSANDS: u64 = 5;

#[tokio::test]
async fn of_a_thousand_only_the_bad_one_dies() {
    let database = Database::create(POSTGRES).await;
    let store = Arc::new(database.store().await);
    let history = Arc::new(History::default());
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let bad: BTreeSet<u64> =
        (0..THOUSANDS).map(|thousand| 1_000 * thousand + rng.random_range(0..1_000)).collect();
    let messages = (0..THOUSANDS * 1_000).map(|n| message(&history, &format!("key {}", n % 100)));
    let ids = store.publish(messages.collect()).await.unwrap();
    let good: Vec<u64> = (0..history.attempts()).filter(|n| !bad.contains(n)).collect();
    history.committed(&good);

    let sink = Recorder::new(&history, bad.clone());
    let options = RelayOptions { drain: true, ..RelayOptions::new(WorkerId("a relay".to_owned())) };
    let relay = Relay::new(store.clone(), plan(sink.clone()), options).unwrap();
    let report = tokio::time::timeout(DEADLINE, relay.run(Stop::new())).await.unwrap().unwrap();

    assert_eq!(history.judge(), Findings::default());
    assert_eq!(report.counts.delivered, good.len() as u64);
    assert_eq!(sink.largest_group.load(Relaxed), 1_000);
    let stuck = store.stuck(StuckQuery { limit: 10_000, ..StuckQuery::default() }).await.unwrap();
    assert!(stuck.iter().all(|stuck| stuck.state == StuckState::Dead), "{stuck:?}");
    let dead: BTreeSet<_> = stuck.iter().map(|stuck| stuck.id).collect();
    assert_eq!(dead, bad.iter().map(|n| ids[*n as usize]).collect());
}
