//! One relay at a time, nothing skipped, and what a slow sink holds up.

use crate::support::epoch;
use crate::{
    adopt_entities, entities, impatient, key, options, plan, relay, sink::Fake, until, write,
};
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    Outbox, WorkerId,
    outbox::{
        Claim, ClaimRequest, Gained, GiveBack, LANES, LaneLease, Place, Progress, Reader,
        Settlement, Share, Shared,
    },
};
use tidegate_engine::{RelayOptions, Stop};
use tidegate_postgres::Adopted;

pub const LEASE: Duration = Duration::from_secs(60);
pub const PENDING: &str = "select count(*)::text from entity_outbox where processed_at is null";

pub async fn share(adopted: &Adopted, held: &[LaneLease], lease: Duration) -> Shared {
    let relay = WorkerId("tester".to_owned());
    let (epoch, held) = (epoch(), held.to_vec());
    let request = Share { relay, epoch, held, routes: Vec::new(), lease };
    adopted.share_lanes(request).await.unwrap()
}

pub fn leases(gained: &[Gained]) -> Vec<LaneLease> {
    gained.iter().map(|gained| gained.lease).collect()
}

pub fn everything(gained: &[Gained]) -> ClaimRequest {
    let place = |gained: &Gained| Place { lane: gained.lease.lane, after: gained.cursor };
    let places = gained.iter().map(place).collect();
    let reader = Reader { places, most: 100, ..Reader::default() };
    let (epoch, readers) = (epoch(), vec![reader]);
    ClaimRequest { epoch, readers, most_bytes: 1 << 20, ..ClaimRequest::default() }
}

/// Everything that was read is done.
pub fn settlement(gained: &[Gained], claim: &Claim) -> Settlement {
    let progress = |gained: &Gained| Progress {
        lane: gained.lease.lane,
        fence: gained.lease.fence,
        cursor: claim.readings[0].read_to,
        lags: Vec::new(),
        before: None,
    };
    let lanes = gained.iter().map(progress).collect();
    let messages = claim.readings.iter().flat_map(|reading| &reading.messages);
    let done = messages.map(|message| (message.lane, message.position)).collect();
    Settlement { epoch: epoch(), lanes, done, ..Settlement::default() }
}

#[tokio::test]
async fn all_lanes_go_to_one_relay_and_a_lost_lease_changes_nothing() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "1")]).await;
    let (one, other) = (adopt_entities(&database).await, adopt_entities(&database).await);
    let first = share(&one, &[], Duration::ZERO).await.gained;
    assert_eq!(first.len(), usize::from(LANES));
    let claim = one.claim_messages(everything(&first)).await.unwrap();
    assert_eq!(claim.readings[0].messages.len(), 1);

    // Its lease is over: the other takes the table, and reads what was not settled.
    let second = share(&other, &[], LEASE).await.gained;
    assert_eq!(second.len(), usize::from(LANES));
    let late = one.settle_messages(settlement(&first, &claim)).await.unwrap();
    assert_eq!(late.late.len(), usize::from(LANES));
    until(&database, PENDING, &["1"]).await;
    let lost = share(&one, &leases(&first), LEASE).await;
    assert_eq!((lost.lost.len(), lost.gained.len()), (usize::from(LANES), 0));

    let claim = other.claim_messages(everything(&second)).await.unwrap();
    assert_eq!(claim.readings[0].messages.len(), 1);
    let again = other.claim_messages(everything(&second)).await.unwrap();
    assert!(again.readings[0].messages.is_empty(), "it is in memory");
    let done = settlement(&second, &claim);
    for _ in 0..2 {
        assert!(other.settle_messages(done.clone()).await.unwrap().late.is_empty());
    }
    until(&database, PENDING, &["0"]).await;

    let (relay, lanes) = (WorkerId("tester".to_owned()), leases(&second));
    other.give_back_lanes(GiveBack { relay, lanes, ends: true }).await.unwrap();
    assert_eq!(share(&one, &[], LEASE).await.gained.len(), usize::from(LANES));
}

#[tokio::test]
async fn a_relay_that_stands_by_takes_over_when_the_first_is_gone() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "1"), ("UPDATE", "2")]).await;
    let (mute, sink) = (Arc::new(Fake::silent()), Arc::new(Fake::default()));
    let options = |name| RelayOptions { lease: Duration::from_secs(1), ..options(name) };
    let one = adopt_entities(&database).await;
    let first = relay(&one, plan(&[("*", &mute)], impatient()), options("first"));
    let first = tokio::spawn(async move { first.run(Stop::new()).await });
    let holder = "select coalesce(relay, '') from tidegate.adopted";
    until(&database, holder, &["first"]).await;

    let two = adopt_entities(&database).await;
    let second = relay(&two, plan(&[("*", &sink)], impatient()), options("second"));
    let stop = Stop::new();
    let asked = stop.clone();
    let second = tokio::spawn(async move { second.run(asked).await });
    // Whoever renews the lease keeps it, for longer than one lasts.
    database.execute("create table started as select now() as at").await;
    let renewed =
        "select (expires_at > at + interval '1500 ms')::text from tidegate.adopted, started";
    until(&database, renewed, &["true"]).await;
    assert!(sink.got().is_empty());
    first.abort();
    until(&database, PENDING, &["0"]).await;
    until(&database, holder, &["second"]).await;
    stop.stop();
    second.await.unwrap().unwrap();
    assert_eq!(sink.of_key(&key("a"), Some("operation")), ["INSERT", "UPDATE"]);
    until(&database, holder, &[""]).await;
}

#[tokio::test]
async fn a_row_that_commits_late_is_not_skipped() {
    let database = entities().await;
    let client = database.client().await;
    let insert =
        "begin; insert into entity_outbox (repository_id, entity_id, operation, target_store,
        payload) values (gen_random_uuid(), 'late', 'INSERT', 'x', '1')";
    client.batch_execute(insert).await.unwrap();
    write(&database, "a", &[("INSERT", "1"), ("UPDATE", "2")]).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    let running = relay(&adopted, plan(&[("*", &sink)], impatient()), options("runs"));
    let stop = Stop::new();
    let asked = stop.clone();
    let running = tokio::spawn(async move { running.run(asked).await });
    until(&database, PENDING, &["0"]).await;
    assert_eq!(sink.got().len(), 2);
    client.batch_execute("commit").await.unwrap();
    let done = "select count(processed_at)::text from entity_outbox";
    until(&database, done, &["3"]).await;
    stop.stop();
    assert_eq!(running.await.unwrap().unwrap().counts.delivered, 3);
}

#[tokio::test]
async fn a_sink_that_does_not_answer_holds_up_no_other() {
    let database = entities().await;
    write(&database, "slow", &[("INSERT", "1"), ("UPDATE", "2")]).await;
    database.execute("update entity_outbox set target_store = 'slow'").await;
    write(&database, "a", &[("INSERT", "1"), ("UPDATE", "2")]).await;
    let (slow, fast) = (Arc::new(Fake::silent()), Arc::new(Fake::default()));
    let adopted = adopt_entities(&database).await;
    let plan = plan(&[("slow.*", &slow), ("*", &fast)], impatient());
    let running = relay(&adopted, plan, options("runs"));
    let stop = Stop::new();
    let asked = stop.clone();
    let running = tokio::spawn(async move { running.run(asked).await });
    let pending =
        "select entity_id::text from entity_outbox where processed_at is null order by created_at";
    until(&database, pending, &["slow", "slow"]).await;
    write(&database, "b", &[("INSERT", "3")]).await;
    until(&database, pending, &["slow", "slow"]).await;
    slow.speak();
    until(&database, pending, &[]).await;
    stop.stop();
    assert_eq!(running.await.unwrap().unwrap().counts.delivered, 5);
    assert_eq!(slow.of_key(&key("slow"), Some("operation")), ["INSERT", "UPDATE"]);
}
