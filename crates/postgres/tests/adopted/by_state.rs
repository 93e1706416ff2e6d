//! What a relay is told about rows that were set aside or handed out before, call by call.

use crate::{
    adopt, adopt_entities, database, drain_to, entities,
    lease::{LEASE, PENDING, everything, leases, settlement, share},
    sink::Fake,
    until, write,
};
use std::{collections::BTreeSet, sync::Arc};
use tidegate_core::{
    InspectOutbox, Kind, Message, Outbox,
    outbox::{
        Aside, Claim, ClaimRequest, Gained, KeyHash, KeyOrder, LANES, Lane, OnDead, Position,
        Reads, Relays, SetAside, Settlement, StuckQuery,
    },
};
use tidegate_postgres::adopted::{Mapping, Preset};

const ROWS: &str =
    "create table outbox (id text primary key, n bigserial, topic text, key text, body text,
    region text not null default 'eu', sent boolean not null default false)";

fn mapping() -> Mapping {
    serde_json::from_str(
        r#"{"table": "outbox", "id": ["id"], "order": ["n"], "topic": ["topic"], "key": ["key"],
            "payload": "body", "where": {"region": "eu"},
            "pending": {"equal": {"column": "sent", "value": "false"}},
            "done": {"set": {"column": "sent", "value": "true"}}}"#,
    )
    .unwrap()
}

/// With what was set aside.
fn with_due(gained: &[Gained]) -> ClaimRequest {
    let lanes = gained.iter().map(|gained| gained.lease.lane).collect();
    ClaimRequest { lanes, most_due: 100, ..everything(gained) }
}

fn messages(claim: &Claim) -> Vec<&Message> {
    claim.readings.iter().flat_map(|reading| &reading.messages).collect()
}

#[tokio::test]
async fn capabilities_say_what_the_table_can_do() {
    let database = entities().await;
    database
        .execute("create table bare (id uuid primary key, aggregatetype text, aggregateid text, type text, payload jsonb)")
        .await;
    let bare = Mapping { table: Some("bare".to_owned()), ..Mapping::of(Preset::Debezium) };
    let ordered = adopt_entities(&database).await.outbox_capabilities();
    let unordered = adopt(&database, bare).await.outbox_capabilities();
    assert!(matches!(&ordered.order, KeyOrder::If(it) if it.contains("created_at")), "{ordered:?}");
    assert!(matches!(unordered.order, KeyOrder::Never(_)), "{unordered:?}");
    for it in [ordered, unordered] {
        assert_eq!((it.reads, it.relays, it.batches), (Reads::ByState, Relays::One, false));
    }
}

/// What was set aside is gone, has lost its key, is no message any more, or is left out by the filter: each is dealt
/// with in the lane of the key that waits for it, so that the key is free when the store says so.
#[tokio::test]
async fn what_became_of_rows_that_were_set_aside_frees_their_keys() {
    let database = database(ROWS).await;
    database
        .execute(
            "insert into outbox (id, topic, key, body, region) values
                ('row keyless', 't', null, '1', 'eu'), ('row broken', null, 'broken', '1', 'eu'),
                ('row elsewhere', 't', 'elsewhere', '1', 'us'), ('row fresh', 't', 'fresh', '1', 'eu')",
        )
        .await;
    // As an older version has stored them, with ids that know no lanes.
    let names = ["gone", "keyless", "broken", "elsewhere"];
    let keys = names.map(KeyHash::of);
    let aside = (201..).zip(names).zip(keys).map(|((id, name), key)| {
        format!(
            "('public.outbox', {id}, 'row {name}', 't', {}, 's', 'retry', 1, 'x', 'skip', now())",
            key.0
        )
    });
    let aside: Vec<String> = aside.collect();
    database
        .execute(&format!(
            "insert into tidegate.adopted (adopted, fence, expires_at, last_id) values ('public.outbox', 1, now(), 204);
            insert into tidegate.adopted_aside
                (adopted, id, row_key, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
            values {}",
            aside.join(", ")
        ))
        .await;
    let adopted = adopt(&database, mapping()).await;
    let gained = share(&adopted, &[], LEASE).await.gained;
    // There are no routes, so that taking the table over has left all of it without one.
    database.execute("update tidegate.adopted_aside set sink = 's', state = 'retry'").await;

    let claim = adopted.claim_messages(with_due(&gained)).await.unwrap();
    let lane = |name: &str| Lane((KeyHash::of(name).0 as u64 % u64::from(LANES)) as u16);
    assert_eq!(claim.gone, [(lane("gone"), Position(201))]);
    let due: Vec<_> = claim.due.iter().map(|it| (&*it.name, it.lane, it.position.0)).collect();
    assert_eq!(due, [("row keyless", lane("keyless"), 202), ("row broken", lane("broken"), 203)]);
    let damage: Vec<_> = claim.due.iter().map(|it| it.damage.as_deref()).collect();
    assert_eq!(damage, [None, Some("its topic is null")]);
    let [unrouted] = &claim.set_aside[..] else { panic!("{:?}", claim.set_aside) };
    assert_eq!((unrouted.lane, unrouted.position.0), (lane("elsewhere"), 204));
    assert_eq!(unrouted.aside, Aside::Unrouted);
    let [fresh] = messages(&claim)[..] else { panic!("{claim:?}") };
    assert!(
        fresh.name == "row fresh" && fresh.position.0 > 204 && fresh.id == fresh.position.into()
    );

    let dead = SetAside {
        lane: lane("broken"),
        position: Position(203),
        topic: String::new(),
        key: Some(KeyHash::of("broken")),
        sink: "s".to_owned(),
        aside: Aside::Dead { attempts: 0, reason: "y".to_owned(), then: OnDead::Skip },
    };
    let due_done = (lane("keyless"), Position(202));
    let mut all = settlement(&gained, &claim);
    all.done.extend(claim.gone.iter().copied().chain([due_done]));
    all.aside = vec![unrouted.clone(), dead];
    let settled = adopted.settle_messages(Settlement { number: 1, ..all }).await.unwrap();
    let freed: BTreeSet<(Lane, KeyHash)> =
        settled.freed.iter().filter(|it| it.sink == "s").map(|it| (it.lane, it.key)).collect();
    assert_eq!(freed, names.map(|name| (lane(name), KeyHash::of(name))).into());
    let sent = "select id from outbox where sent order by 1";
    assert_eq!(database.rows(sent).await.concat(), ["row fresh", "row keyless"]);
    let left = "select row_key, state, attempts from tidegate.adopted_aside order by 1";
    let expected = [["row broken", "dead", "1"], ["row elsewhere", "unrouted", "1"]];
    assert_eq!(database.rows(left).await, expected, "attempts never go down");
}

/// A position that is stored is never given out again, however it was numbered.
#[tokio::test]
async fn ids_of_older_versions_and_of_this_one_never_meet() {
    let database = entities().await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    let mut known = BTreeSet::new();
    for (n, last) in [1_i64, 63, 64, 65, 5_000, 40_000].into_iter().enumerate() {
        database
            .execute(&format!(
                "insert into tidegate.adopted (adopted, fence, expires_at, last_id)
                    values ('public.entity_outbox', 1, now(), {last})
                on conflict (adopted) do update set last_id = greatest(adopted.last_id, {last}), expires_at = now()"
            ))
            .await;
        let rows: Vec<(&str, &str)> = (0..70).map(|_| ("UPDATE", "bad")).collect();
        write(&database, "a", &rows).await;
        // Sometimes by a process that knows nothing of before.
        let other = adopt_entities(&database).await;
        let dead = drain_to(if n % 2 == 0 { &adopted } else { &other }, &sink).await.dead;
        assert_eq!(dead, 70);
        let stuck = adopted.stuck(StuckQuery { limit: 1_000, ..StuckQuery::default() });
        let ids: BTreeSet<i64> =
            stuck.await.unwrap().iter().filter_map(|it| it.id.as_number()).collect();
        let end = known.last().copied().unwrap_or(0).max(last);
        let new: Vec<i64> = ids.difference(&known).copied().collect();
        assert!(new.len() == 70 && new[0] > end, "behind {end}: {new:?}");
        known = ids;
    }
}

/// A store that went back in time has forgotten who holds what: all lanes are lost, and leased anew, and what was in
/// memory is handed out again.
#[tokio::test]
async fn what_was_read_in_another_epoch_is_read_again() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "1"), ("UPDATE", "2")]).await;
    let adopted = adopt_entities(&database).await;
    let first = share(&adopted, &[], LEASE).await.gained;
    let before = adopted.claim_messages(everything(&first)).await.unwrap();
    assert_eq!(messages(&before).len(), 2);
    database.execute("truncate tidegate.epoch").await;
    let error = adopted.claim_messages(everything(&first)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::WentBack);

    let shared = share(&adopted, &leases(&first), LEASE).await;
    let all = usize::from(LANES);
    assert_eq!((shared.lost.len(), shared.gained.len(), shared.pending), (all, all, 0));
    let (second, epoch) = (shared.gained, shared.epoch);
    let request = ClaimRequest { epoch: epoch.clone(), ..everything(&second) };
    let again = adopted.claim_messages(request).await.unwrap();
    let place = |claim: &Claim| messages(claim).iter().map(|it| it.position).max().unwrap();
    assert!(messages(&again).len() == 2 && place(&again) > place(&before));
    // What the relay knew is worth nothing, in either epoch.
    let late = Settlement { number: 1, ..settlement(&first, &before) };
    assert_eq!(adopted.settle_messages(late.clone()).await.unwrap().late.len(), all);
    let late = Settlement { epoch: epoch.clone(), ..late };
    assert_eq!(adopted.settle_messages(late).await.unwrap().late.len(), all);
    until(&database, PENDING, &["2"]).await;
    let done = Settlement { epoch, number: 1, ..settlement(&second, &again) };
    assert!(adopted.settle_messages(done).await.unwrap().late.is_empty());
    until(&database, PENDING, &["0"]).await;
}
