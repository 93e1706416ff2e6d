//! Ids that start anew, as they do after tables were copied to another server without their sequences.

use super::*;

/// What a copy of the tables looks like to whoever asks it first.
async fn copy_to_another_server(database: &Database) {
    // Logical replication copies no unlogged tables, and no positions of sequences.
    database
        .execute("alter sequence tidegate.message_id restart; delete from tidegate.epoch")
        .await;
}

async fn share_again(store: &Postgres, relay: &Relay<'_>) -> Result<Shared, StoreError> {
    let held = relay.lanes.iter().map(|gained| gained.lease).collect();
    let (epoch, relay) = (relay.epoch.clone(), WorkerId("a relay".to_owned()));
    store.share_lanes(Share { relay, epoch, held, routes: Vec::new(), lease: LEASE }).await
}

async fn settle(relay: &Relay<'_>, cursor: i64) {
    let progress = |gained: &Gained| Progress {
        lane: gained.lease.lane,
        fence: gained.lease.fence,
        cursor,
        lags: Vec::new(),
        before: None,
    };
    let lanes = relay.lanes.iter().map(progress).collect();
    let settlement =
        Settlement { epoch: relay.epoch.clone(), number: 1, lanes, ..Settlement::default() };
    assert_eq!(relay.store.settle_messages(settlement).await.unwrap().late, []);
}

/// Whether the new ids have reached those that were read, or passed them.
#[tokio::test]
async fn ids_that_start_anew_are_refused_until_messages_are_renumbered() {
    for (before, after) in [(100, 40), (100, 100), (100, 160), (3, 1), (1, 5)] {
        let database = Database::create(POSTGRES).await;
        let store = database.store().await;
        let relay = Relay::start(&store).await;
        let read = |n: usize| new_message(&format!("key {}", n % 3));
        store.publish((0..before).map(read).collect()).await.unwrap();
        let messages = relay.read().await;
        settle(&relay, messages[before - 1].position.0).await;
        copy_to_another_server(&database).await;
        store.publish((0..after).map(read).collect()).await.unwrap();

        for _ in 0..2 {
            let refused = share_again(&store, &relay).await.unwrap_err();
            assert_eq!(refused.kind(), Kind::IdsRestarted, "{before}, {after}: {refused}");
            assert!(refused.to_string().contains("select tidegate.renumber()"), "{refused}");
        }
        assert!(store.outbox().await.unwrap().advice.is_some(), "{before}, {after}");
        let renumbered = database.rows("select tidegate.renumber()").await;
        assert_eq!(renumbered, [[after.to_string()]], "{before}, {after}");
        assert_eq!(store.outbox().await.unwrap().advice, None);
        let relay = Relay::start(&store).await;
        let next = store.publish(vec![new_message("next")]).await.unwrap();
        let ids: Vec<i64> = relay.ids().await;
        let expected: Vec<i64> =
            (1..=after as i64 + 1).map(|n| messages[before - 1].position.0 + n).collect();
        assert!(ids.is_sorted() && ids.len() == after + 1, "{before}, {after}: {ids:?}");
        assert_eq!(ids.last(), next[0].as_number().as_ref(), "{expected:?}");
    }
}

/// Under a relay that lives.
#[tokio::test]
async fn a_sequence_that_is_set_back_is_noticed_by_the_next_claim() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    store.publish(vec![new_message("k"); 20]).await.unwrap();
    assert_eq!(relay.ids().await.len(), 20);
    database.execute("select setval('tidegate.message_id', 10)").await;
    let refused = store.claim_messages(relay.request()).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::WentBack, "it may have gone back in time");
    let refused = store.claim_messages(relay.request()).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::IdsRestarted, "it stays so");
    // Also when the new ids have passed the cursors, and whoever asks.
    store.publish(vec![new_message("k"); 30]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(try_start(&store).await.unwrap_err().kind(), Kind::IdsRestarted);
    }
    assert!(store.outbox().await.unwrap().advice.is_some());
}

async fn try_start(store: &Postgres) -> Result<Shared, StoreError> {
    let relay = WorkerId("a relay".to_owned());
    let (epoch, held, routes) = Default::default();
    let share = Share { relay, epoch, held, routes, lease: LEASE };
    store.share_lanes(share).await
}

/// While no relay runs, in an epoch that goes on.
#[tokio::test]
async fn a_sequence_that_was_set_back_is_noticed_by_the_next_relay() {
    for (before, back_to, after) in
        [(100, 1, 40), (100, 1, 120), (100, 60, 41), (5, 4, 1), (3, 1, 900)]
    {
        let database = Database::create(POSTGRES).await;
        let store = database.store().await;
        let relay = Relay::start(&store).await;
        store.publish(vec![new_message("k"); before]).await.unwrap();
        let last = relay.ids().await[before - 1];
        settle(&relay, last).await;
        let lanes = relay.lanes.iter().map(|gained| gained.lease).collect();
        let relay = WorkerId("a relay".to_owned());
        store.give_back_lanes(GiveBack { relay, lanes, ends: true }).await.unwrap();
        database.execute(&format!("select setval('tidegate.message_id', {back_to})")).await;
        store.publish(vec![new_message("k"); after]).await.unwrap();
        let refused = try_start(&store).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::IdsRestarted, "{before}, {back_to}, {after}");
        let renumbered = database.rows("select tidegate.renumber()").await;
        assert_eq!(renumbered, [[after.to_string()]], "{before}, {back_to}, {after}");
        let relay = Relay::start(&store).await;
        assert_eq!(relay.ids().await.len(), after, "{before}, {back_to}, {after}");
    }
}

/// Messages seem to be published after they were delivered.
#[tokio::test]
async fn a_clock_that_was_set_back_is_nothing_to_mend() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    // From the first epoch on, the store knows on which server it is.
    database.execute("delete from tidegate.epoch").await;
    let relay = Relay::start(&store).await;
    store.publish(vec![new_message("k"); 5]).await.unwrap();
    database.execute("update tidegate.message set published_at = now() + interval '1 hour'").await;
    let ids = relay.ids().await;
    settle(&relay, ids[4]).await;
    for _ in 0..2 {
        database.execute("delete from tidegate.epoch").await;
        let relay = Relay::start(&store).await;
        assert_eq!(relay.ids().await.len(), 0);
    }
    assert_eq!(store.outbox().await.unwrap().advice, None);
}

/// A dump holds the row, which is put back by another transaction than the one that wrote it.
#[tokio::test]
async fn a_store_that_was_restored_has_another_epoch() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    database
        .execute(
            "create table dumped as select * from tidegate.epoch;
            delete from tidegate.epoch;
            insert into tidegate.epoch select * from dumped",
        )
        .await;
    let refused = store.claim_messages(relay.request()).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::WentBack);
    let shared = share_again(&store, &relay).await.unwrap();
    assert_ne!(shared.epoch, relay.epoch);
    assert_eq!(share_again(&store, &relay).await.unwrap().epoch, shared.epoch, "and keeps it");
    // That ids were found to start anew, and mended, changes nothing about the epoch.
    database.execute("select tidegate.note_restarted_ids(true), tidegate.renumber()").await;
    assert_eq!(share_again(&store, &relay).await.unwrap().epoch, shared.epoch);
}

/// Rows arrive there without the triggers that go with them.
#[tokio::test]
async fn a_copy_of_the_tables_publishes_to_the_open_segment_and_has_its_own_fences() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let mut fences = Vec::new();
    for _ in 0..2 {
        database
            .execute(
                "set session_replication_role = replica;
                update tidegate.outbox set segment = 1;
                update tidegate.lane set fence = 0, relay = null;
                delete from tidegate.progress;
                alter sequence tidegate.fence restart;
                delete from tidegate.epoch",
            )
            .await;
        let relay = Relay::start(&store).await;
        fences.push(relay.lanes[0].lease.fence);
    }
    assert_ne!(fences[0], fences[1], "two copies that are alike give away others");
    store.publish(vec![new_message("k")]).await.unwrap();
    assert_eq!(database.rows("select count(*) from tidegate.message_1").await.concat(), ["1"]);
}

/// A server that is healthy, whatever happened to it, has nothing to mend.
#[tokio::test]
async fn a_new_epoch_alone_is_nothing_to_mend() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    for round in 0..3 {
        let relay = Relay::start(&store).await;
        store.publish(vec![new_message("k"); 5]).await.unwrap();
        let messages = relay.read().await;
        assert_eq!(messages.len(), 5 + usize::from(round > 0) * 2, "round {round}");
        settle(&relay, messages[2 + usize::from(round > 0) * 2].position.0).await;
        database.execute("delete from tidegate.epoch").await;
        assert_eq!(database.rows("select tidegate.has_restarted_ids()").await, [["f"]]);
    }
}
