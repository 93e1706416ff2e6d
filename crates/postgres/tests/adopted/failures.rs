//! What becomes of rows that cannot be delivered.

use crate::{
    adopt, adopt_entities, database, drain, drain_to, entities, impatient, key, plan, sink::Fake,
    write,
};
use std::sync::Arc;
use tidegate_core::{
    InspectOutbox,
    outbox::{
        AuditLine, Decision, MessageId, OnDead, Selection, SteerPage, StuckQuery, StuckState,
    },
};
use tidegate_engine::relay::TopicPolicy;
use tidegate_postgres::adopted::Mapping;

fn somebody() -> AuditLine {
    AuditLine { who: "tester".to_owned(), why: "because".to_owned(), ..AuditLine::default() }
}

const FAILURES: &str = "select entity_id, retry_count, last_error, processed_at is not null
    from entity_outbox where retry_count > 0 order by created_at";

#[tokio::test]
async fn a_row_that_fails_is_tried_again_and_only_its_key_waits() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "flaky"), ("UPDATE", "2"), ("DELETE", "3")]).await;
    write(&database, "b", &[("INSERT", "4"), ("UPDATE", "5")]).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    let counts = drain_to(&adopted, &sink).await;
    assert_eq!((counts.delivered, counts.retried), (5, 2));
    let operations = |entity| sink.of_key(&key(entity), Some("operation"));
    assert_eq!(operations("a"), ["INSERT", "UPDATE", "DELETE"]);
    assert_eq!(operations("b"), ["INSERT", "UPDATE"]);
    assert!(sink.got()[0].key.as_deref() == Some(&key("b")), "others go on");
    assert_eq!(database.rows(FAILURES).await, [["a", "2", "it is flaky", "t"]]);
    assert_eq!(database.rows("select * from tidegate.adopted_aside").await.len(), 0);
}

#[tokio::test]
async fn a_dead_row_is_not_read_again_until_it_is_retried() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "bad"), ("UPDATE", "2")]).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    let counts = drain_to(&adopted, &sink).await;
    assert_eq!((counts.delivered, counts.dead), (1, 1));
    assert_eq!(database.rows(FAILURES).await, [["a", "1", "it is bad", "f"]]);

    // Another process sees the same, and reads it no more.
    let other = adopt_entities(&database).await;
    let counts = drain_to(&other, &sink).await;
    assert_eq!((counts.delivered, counts.dead), (0, 0));
    let stuck = other.stuck(StuckQuery { limit: 10, ..StuckQuery::default() }).await.unwrap();
    assert_eq!((stuck.len(), stuck[0].state, stuck[0].attempts), (1, StuckState::Dead, 1));
    assert_eq!((&*stuck[0].topic, stuck[0].key.as_deref()), ("qdrant.people", Some(&*key("a"))));
    let message = other.message(stuck[0].id.clone()).await.unwrap().unwrap().message;
    assert_eq!(message.payload, br#"{"text": "bad"}"#);
    let status = other.outbox().await.unwrap();
    assert_eq!((status.topics[0].dead, status.topics[0].outstanding), (1, 0));
    assert_eq!(other.outstanding().await.unwrap().messages, 0);
    let groups = other.dead_groups().await.unwrap();
    assert_eq!((groups.len(), &*groups[0].reason, groups[0].messages), (1, "it is bad", 1));

    sink.mend();
    let which = Selection { ids: Some(vec![stuck[0].id.clone()]), ..Selection::default() };
    assert_eq!(other.retry_dead(which, &somebody()).await.unwrap(), 1);
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 1);
    let sql = "select count(processed_at) from entity_outbox";
    assert_eq!(database.rows(sql).await, [["2"]]);
}

#[tokio::test]
async fn a_dead_row_that_is_dropped_counts_as_done_and_frees_its_key() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "bad"), ("UPDATE", "2")]).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    let block = || {
        let policy = TopicPolicy { on_dead: OnDead::Block, ..impatient() };
        plan(&[("*", &sink)], policy)
    };
    let counts = drain(&adopted, block()).await;
    assert_eq!((counts.delivered, counts.dead), (0, 1), "the rest of its key waits");
    assert_eq!(adopted.drop_dead(Selection::default(), &somebody()).await.unwrap(), 1);
    let audit = adopted.audit(10).await.unwrap();
    assert_eq!((audit.len(), &*audit[0].what, &*audit[0].who), (1, "drop", "tester"));
    assert_eq!(drain(&adopted, block()).await.delivered, 1);
    assert_eq!(sink.of_key(&key("a"), Some("operation")), ["UPDATE"]);
    let sql = "select count(processed_at) from entity_outbox";
    assert_eq!(database.rows(sql).await, [["2"]]);
}

#[tokio::test]
async fn a_row_that_is_no_message_is_set_aside_alone() {
    let database = database(
        "create table outbox (id bigserial primary key, messageid varchar unique not null,
            topic varchar, dispatched timestamptz, contenttype varchar, headerbag text, body text);
        insert into outbox (messageid, topic, contenttype, headerbag, body) values
            ('m1', 'a', 'application/json', null, '{broken'), ('m2', null, null, null, 'x'),
            ('m3', 'a', null, '[1]', 'x'), ('m4', 'a', 'application/json', '{}', '{\"fine\": 1}')",
    )
    .await;
    let mapping: Mapping = serde_json::from_str(
        r#"{"table": "outbox", "id": ["messageid"], "order": ["id"], "pending": {"null": "dispatched"},
            "done": {"now": "dispatched"}, "topic": ["topic"], "payload": "body",
            "payload_kind": "text", "headers": {"content-type": "contenttype"},
            "headers_column": "headerbag"}"#,
    )
    .unwrap();
    let adopted = adopt(&database, mapping).await;
    let report = adopted.shadow().await.unwrap();
    assert_eq!((report.pending, report.poison, report.poison_rows.len()), (4, 3, 3));

    let sink = Arc::new(Fake::default());
    let counts = drain_to(&adopted, &sink).await;
    assert_eq!((counts.delivered, counts.dead), (1, 3));
    let sql = "select row_key, split_part(reason, ':', 1), state, sink, attempts
        from tidegate.adopted_aside order by 1";
    let expected = [
        ["m1", "the payload is no JSON", "dead", "to *", "0"],
        ["m2", "its topic is null", "dead", "to *", "0"],
        ["m3", "its headers are no JSON object", "dead", "to *", "0"],
    ];
    assert_eq!(database.rows(sql).await, expected);

    // Mended by hand, it is delivered; the others die again.
    database.execute("update outbox set body = '1' where messageid = 'm1'").await;
    assert_eq!(adopted.retry_dead(Selection::default(), &somebody()).await.unwrap(), 3);
    let counts = drain_to(&adopted, &sink).await;
    assert_eq!((counts.delivered, counts.dead), (1, 2));
    assert_eq!(database.rows(sql).await, expected[1..]);
}

/// What is noted for relays does not grow with the messages, and what waited for a dropped one is found at once.
#[tokio::test]
async fn a_key_is_noted_once_however_many_rows_are_retried_or_dropped() {
    let database = entities().await;
    let changes: Vec<(&str, &str)> = (0..30).map(|_| ("UPDATE", "bad")).collect();
    write(&database, "a", &changes).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    assert_eq!(drain_to(&adopted, &sink).await.dead, 30);
    let page = |decision| SteerPage {
        decision,
        which: Selection::default(),
        by: somebody(),
        after: None,
        most: 7,
        line: None,
    };
    let noted = "select count(*) from tidegate.adopted_look_again";
    for _ in 0..2 {
        assert_eq!(adopted.steer_dead(page(Decision::Retry)).await.unwrap().messages, 7);
        assert_eq!(database.rows(noted).await.concat(), ["1"]);
    }
    database
        .execute("update tidegate.adopted_aside set on_dead = 'park' where state = 'dead'")
        .await;
    for _ in 0..2 {
        assert_eq!(adopted.steer_dead(page(Decision::Drop)).await.unwrap().messages, 7);
        let looked_at = format!("{noted} where due_at = last_at");
        assert_eq!(database.rows(&looked_at).await.concat(), ["1"]);
    }
    assert_eq!(adopted.outbox().await.unwrap().topics[0].dead, 2);
    assert_eq!(drain_to(&adopted, &sink).await.dead, 14, "those that were retried die again");
}

#[tokio::test]
async fn times_without_end_hold_nobody_up() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "1")]).await;
    database.execute("update entity_outbox set created_at = 'infinity'").await;
    write(&database, "b", &[("INSERT", "2")]).await;
    let first = "update entity_outbox set created_at = '-infinity' where entity_id = 'b'";
    database.execute(first).await;
    write(&database, "c", &[("INSERT", "3")]).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    assert_eq!(adopted.outbox().await.unwrap().topics[0].outstanding, 3);
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 3);
    let order: Vec<Option<String>> = sink.got().into_iter().map(|got| got.key).collect();
    assert_eq!(order, ["b", "c", "a"].map(|entity| Some(key(entity))));
}

#[tokio::test]
async fn a_row_that_somebody_else_finished_is_forgotten() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "bad"), ("UPDATE", "2")]).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    drain_to(&adopted, &sink).await;
    adopted.retry_dead(Selection::default(), &somebody()).await.unwrap();
    database
        .execute("update entity_outbox set processed_at = '2020-01-01' where retry_count = 1")
        .await;
    let counts = drain_to(&adopted, &sink).await;
    assert_eq!((counts.delivered, counts.dead), (0, 0));
    assert_eq!(database.rows("select * from tidegate.adopted_aside").await.len(), 0);
    let sql = "select count(*) from entity_outbox where processed_at = '2020-01-01'";
    assert_eq!(database.rows(sql).await, [["1"]], "its time stays");
}

#[tokio::test]
async fn a_row_without_a_route_waits_for_one() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "1"), ("UPDATE", "2")]).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    let counts = drain(&adopted, plan(&[("other.*", &sink)], impatient())).await;
    assert_eq!((counts.delivered, counts.unrouted), (0, 2));
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 2);
    assert_eq!(sink.of_key(&key("a"), Some("operation")), ["INSERT", "UPDATE"]);
}

/// Rows have numbers for people here, whatever their own keys are.
#[tokio::test]
async fn a_text_is_no_id_of_a_row() {
    let database = entities().await;
    write(&database, "a", &[("INSERT", "bad"), ("UPDATE", "bad")]).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    assert_eq!(drain_to(&adopted, &sink).await.dead, 2);
    let all = || StuckQuery { limit: 10, ..StuckQuery::default() };
    let before = adopted.stuck(all()).await.unwrap();
    let stored = adopted.message(before[0].id.clone()).await.unwrap().unwrap();
    let texts = ["nonsense".to_owned(), "0".to_owned(), stored.message.name];
    for id in texts.into_iter().chain(before.iter().map(|it| it.id.to_string())) {
        let id = MessageId::text(id);
        assert_eq!(adopted.message(id.clone()).await.unwrap(), None);
        let which = || Selection { ids: Some(vec![id.clone()]), ..Selection::default() };
        assert_eq!(adopted.stuck(StuckQuery { which: which(), ..all() }).await.unwrap(), []);
        let behind = StuckQuery { after: Some(id.clone()), ..all() };
        assert_eq!(adopted.stuck(behind).await.unwrap(), []);
        for decision in [Decision::Retry, Decision::Drop] {
            for (which, after) in [(which(), None), (Selection::default(), Some(id.clone()))] {
                let by = somebody();
                let page = SteerPage { decision, which, by, after, most: 10, line: None };
                let steered = adopted.steer_dead(page).await.unwrap();
                assert_eq!((steered.messages, steered.next), (0, None), "{id}");
            }
        }
    }
    assert_eq!(adopted.stuck(all()).await.unwrap(), before);
}
