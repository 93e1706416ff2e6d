//! Bad items inside large groups, in a sink that does not tell which they are.

use crate::{
    DEADLINE,
    history::{Findings, History},
    plan,
    sink::Recorder,
    support::{Database, POSTGRES},
    writers::message,
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
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
    let dead: BTreeSet<_> = stuck.iter().map(|stuck| stuck.id.clone()).collect();
    assert_eq!(dead, bad.iter().map(|n| ids[*n as usize].clone()).collect());
}

/// A row that somebody writes to the table itself: topic, key, headers, and whether a sink can get it.
fn row() -> impl Strategy<Value = (String, Option<String>, Option<String>, bool)> {
    let name = |most: usize| {
        let fixed = ["", "*", "a*b", "a\nb", "\u{1}", "\u{85}", "k", "l", "\u{fffe}", "\u{1b}[31m"];
        let fixed = prop::sample::select(fixed.to_vec()).prop_map(str::to_owned);
        prop_oneof![8 => fixed, 1 => Just("x".repeat(most)), 1 => Just("x".repeat(most + 1))]
    };
    let sound = ["{}", r#"{"A": "b"}"#, r#"{"a": ""}"#].map(|text| (Some(text.to_owned()), true));
    let flawed =
        ["[]", "1", "\"x\"", "null", r#"{"a": 1}"#, r#"{"a": null}"#, r#"{"a": {"b": "c"}}"#];
    let flawed = flawed.map(|text| (Some(text.to_owned()), false));
    let headers = [&sound[..], &flawed[..], &[(None, true)]].concat();
    (name(255), prop::option::of(name(1_024)), prop::sample::select(headers)).prop_map(
        |(topic, key, (headers, readable))| {
            let fits = topic.len() <= 255 && key.as_ref().is_none_or(|key| key.len() <= 1_024);
            (topic, key, headers, readable && fits)
        },
    )
}

/// Whatever is in the table: what can be read is delivered, in the order of its key, and all else is dead, alone.
#[tokio::test]
async fn whatever_is_in_a_message_table_one_bad_row_stops_no_other() {
    let database = Database::create(POSTGRES).await;
    let store = Arc::new(database.store().await);
    let client = database.client().await;
    let history = Arc::new(History::default());
    let mut runner = TestRunner::deterministic();
    let (mut good, mut bad) = (Vec::new(), BTreeSet::new());
    for number in 0..300_u64 {
        let (topic, key, headers, readable) = row().new_tree(&mut runner).unwrap().current();
        // What has no key has no order.
        let order = key.clone().unwrap_or_else(|| format!("alone {number}"));
        let payload = history.attempt(&order).to_string().into_bytes();
        let sql = "insert into tidegate.message_0 (id, topic, key, headers, payload)
            values (nextval('tidegate.message_id'), $1, $2, $3::text::jsonb, $4) returning id";
        let id: i64 =
            client.query_one(sql, &[&topic, &key, &headers, &payload]).await.unwrap().get(0);
        match readable {
            true => good.push(number),
            false => _ = bad.insert(id),
        }
    }
    history.committed(&good);
    store.outbox().await.unwrap();
    let sink = Recorder::new(&history, BTreeSet::new());
    let options = RelayOptions { drain: true, ..RelayOptions::new(WorkerId("a relay".to_owned())) };
    let relay = Relay::new(store.clone(), plan(sink), options).unwrap();
    tokio::time::timeout(DEADLINE, relay.run(Stop::new())).await.unwrap().unwrap();
    assert_eq!(history.judge(), Findings::default());
    let stuck = store.stuck(StuckQuery { limit: 1_000, ..StuckQuery::default() }).await.unwrap();
    for it in &stuck {
        assert!(it.state == StuckState::Dead && !it.reason.is_empty(), "{it:?}");
        store.message(it.id.clone()).await.unwrap().unwrap();
    }
    assert_eq!(stuck.iter().filter_map(|it| it.id.as_number()).collect::<BTreeSet<_>>(), bad);
    assert!(good.len() > 50 && bad.len() > 50, "{} and {}", good.len(), bad.len());
    store.outbox().await.unwrap();
    store.dead_groups().await.unwrap();
}
