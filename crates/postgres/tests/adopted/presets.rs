//! Each preset, and a table of one's own, from its rows to a sink.

use crate::{
    adopt, adopt_entities, database, drain_to, entities, key,
    sink::{Fake, Got},
    write,
};
use std::sync::Arc;
use tidegate_postgres::adopted::{Mapping, Order, Preset};

const DEBEZIUM: &str = "(id uuid primary key default gen_random_uuid(),
    aggregatetype varchar(255) not null, aggregateid varchar(255) not null,
    type varchar(255) not null, payload jsonb";

#[tokio::test]
async fn entities_are_delivered_in_order_and_marked() {
    let database = entities().await;
    for entity in ["a", "b", "c"] {
        write(&database, entity, &[("INSERT", "1"), ("UPDATE", "2"), ("DELETE", "3")]).await;
    }
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    assert_eq!(adopted.order(), Order::ByColumns(vec!["created_at".to_owned()]));
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 9);
    for entity in ["a", "b", "c"] {
        let operations = sink.of_key(&key(entity), Some("operation"));
        assert_eq!(operations, ["INSERT", "UPDATE", "DELETE"]);
    }
    let got = &sink.got()[0];
    assert_eq!((&*got.topic, &*got.payload), ("qdrant.people", r#"{"text": "1"}"#));
    let key_use = got.headers.get("key-use");
    assert_eq!(key_use, Some("order"), "its key names nothing in the system that it goes to");
    let sql = format!("select entity_id from entity_outbox where outbox_id = '{}'", got.id);
    assert_eq!(database.rows(&sql).await.len(), 1, "it is known by its row");
    let sql = "select count(processed_at), sum(retry_count), count(last_error) from entity_outbox";
    assert_eq!(database.rows(sql).await, [["9", "0", "0"]]);
    assert_eq!(database.rows("select * from tidegate.adopted_aside").await.len(), 0);
}

#[tokio::test]
async fn rows_of_one_transaction_have_one_time_and_keep_their_order() {
    let database = entities().await;
    let insert = |entity: i32, operation: &str| {
        format!(
            "insert into entity_outbox (repository_id, entity_id, operation, target_store, payload)
            values ('00000000-0000-0000-0000-000000000001', '{entity}', '{operation}', 'x', '1');"
        )
    };
    let operations = ["INSERT", "UPDATE", "DELETE", "INSERT"];
    let one: Vec<String> = (0..20)
        .flat_map(|entity| operations.iter().map(move |operation| insert(entity, operation)))
        .collect();
    database.execute(&format!("begin; {} commit", one.concat())).await;

    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    assert_eq!(adopted.shadow().await.unwrap().ties, 80);
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 80);
    for entity in 0..20 {
        assert_eq!(sink.of_key(&key(&entity.to_string()), Some("operation")), operations);
    }
    assert!(sink.got().iter().all(|got| got.topic == "x"), "a null is no part of a topic");
}

#[tokio::test]
async fn many_rows_take_few_statements() {
    const ROWS: u64 = 10_000;
    let database = entities().await;
    let sql = format!(
        "insert into entity_outbox (repository_id, entity_id, operation, target_store, payload,
            created_at)
        select gen_random_uuid(), n % 500, 'UPDATE', 'x', to_jsonb(n), now() + n * interval '1 ms'
        from generate_series(1, {ROWS}) n; analyze entity_outbox"
    );
    database.execute(&sql).await;
    let (adopted, sink) = (adopt_entities(&database).await, Arc::new(Fake::default()));
    let before = adopted.statements();
    assert_eq!(drain_to(&adopted, &sink).await.delivered, ROWS);
    let statements = adopted.statements() - before;
    assert!(statements < ROWS / 50, "{statements} statements");
    let sql = "select count(*) from entity_outbox where processed_at is null";
    assert_eq!(database.rows(sql).await, [["0"]]);
}

#[tokio::test]
async fn debezium_without_a_time_is_unordered_and_says_so() {
    let database = database(&format!("create table outbox {DEBEZIUM})")).await;
    database
        .execute(
            r#"insert into outbox (aggregatetype, aggregateid, type, payload)
            values ('order', '7', 'OrderCreated', '{"n": 1}'), ('order', '8', 'OrderPaid', null)"#,
        )
        .await;
    let adopted = adopt(&database, Mapping::of(Preset::Debezium)).await;
    assert_eq!(adopted.order(), Order::None);
    assert!(adopted.remarks()[0].contains("delivered in no order"), "{:?}", adopted.remarks());
    assert!(adopted.remarks().iter().any(|it| it.contains("Quarkus deletes its rows")));
    let sink = Arc::new(Fake::default());
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 2);
    let seven: Vec<Got> =
        sink.got().into_iter().filter(|it| it.key.as_deref() == Some("7")).collect();
    assert_eq!(seven[0].topic, "outbox.event.order");
    assert_eq!(seven[0].headers.get("ce-type"), Some("OrderCreated"));
    assert_eq!(sink.of_key("8", None), ["null"]);
    assert_eq!(database.rows("select * from outbox").await.len(), 0, "done is deleted");
}

#[tokio::test]
async fn quarkus_adds_a_time_and_a_trace() {
    let ddl = format!(
        "create table outboxevent {DEBEZIUM}, timestamp timestamp, tracingspancontext text)"
    );
    let database = database(&ddl).await;
    for n in 1..=20 {
        let sql = format!(
            "insert into outboxevent (aggregatetype, aggregateid, type, payload, timestamp,
                tracingspancontext)
            values ('order', '7', 'T', '{n}', timestamp '2024-05-01' - {n} * interval '1 s', 'trace')"
        );
        database.execute(&sql).await;
    }
    let adopted = adopt(&database, Mapping::of(Preset::Debezium)).await;
    assert_eq!(adopted.table(), "public.outboxevent");
    assert_eq!(adopted.order(), Order::ByColumns(vec!["timestamp".to_owned()]));
    let sink = Arc::new(Fake::default());
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 20);
    let expected: Vec<String> = (1..=20).rev().map(|n| n.to_string()).collect();
    assert_eq!(sink.of_key("7", None), expected, "by time, not as they were written");
    assert_eq!(sink.got()[0].headers.get("tracingspancontext"), Some("trace"));
}

#[tokio::test]
async fn brighter_keeps_its_headers() {
    let database = database(
        "create table outbox (id bigserial primary key, messageid varchar(255) unique not null,
            topic varchar(255), messagetype varchar(32), timestamp timestamptz, correlationid varchar,
            replyto varchar, contenttype varchar, partitionkey varchar, workflowid varchar,
            jobid varchar, dispatched timestamptz, headerbag text, body text, source varchar,
            type varchar, dataschema varchar, subject varchar, traceparent varchar,
            tracestate varchar, baggage text, dataref varchar, causationid varchar,
            specversion varchar)",
    )
    .await;
    for n in 1..=3 {
        let sql = format!(
            r#"insert into outbox (messageid, topic, messagetype, timestamp, correlationid, contenttype,
                partitionkey, headerbag, body, source, type, traceparent)
            values ('m{n}', 'greeting', 'MT_EVENT', now() - {n} * interval '1 h', 'c1', 'text/plain',
                'k', '{{"tenant": "blue", "Retries": 2}}', 'hello {n}', 'urn:x', 'Greeted', '00-1')"#
        );
        database.execute(&sql).await;
    }
    let adopted = adopt(&database, Mapping::of(Preset::Brighter)).await;
    let sink = Arc::new(Fake::default());
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 3);
    assert_eq!(sink.of_key("k", None), ["hello 1", "hello 2", "hello 3"], "as they were numbered");
    let got = &sink.got()[0];
    assert_eq!((&*got.id, &*got.topic), ("m1", "greeting"));
    let header = |name: &str| got.headers.get(name).unwrap_or_default();
    let headers = ["content-type", "tenant", "retries", "ce-source", "ce-type", "traceparent"];
    assert_eq!(headers.map(header), ["text/plain", "blue", "2", "urn:x", "Greeted", "00-1"]);
    assert_eq!(header("correlation-id"), "c1");
    assert!(got.headers.get("ce-subject").is_none(), "what is null is left out");
    assert_eq!(database.rows("select count(dispatched) from outbox").await, [["3"]]);
}

#[tokio::test]
async fn an_older_brighter_table_lacks_columns_and_has_bytes() {
    let database = database(
        "create table outbox (id bigserial primary key, messageid varchar(255) unique not null,
            topic varchar(255), messagetype varchar(32), timestamp timestamptz,
            dispatched timestamptz, headerbag text, body bytea);
        insert into outbox (messageid, topic, messagetype, timestamp, headerbag, body)
        values ('m1', 'greeting', 'MT_EVENT', now(), '', '\\x6869')",
    )
    .await;
    let adopted = adopt(&database, Mapping::of(Preset::Brighter)).await;
    assert!(adopted.remarks().iter().any(|it| it.contains("messages have no key")));
    let sink = Arc::new(Fake::default());
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 1);
    let got = &sink.got()[0];
    assert_eq!((&*got.payload, &got.key), ("hi", &None));
    assert_eq!(got.headers.get("content-type"), Some("text/plain"), "as Brighter has it");
}

#[tokio::test]
async fn a_table_of_ones_own_is_mapped_by_hand_whatever_its_names() {
    let database = database(
        r#"create schema "Odd""one";
        create table "Odd""one"."Out;box" ("Part" int, "Id" text, "when" bigint, state smallint not null,
            tenant text, "the ""body" text, errors varchar(5), primary key ("Part", "Id"));
        insert into "Odd""one"."Out;box" values (1, 'a"b', 2, 0, 'blue', 'second'),
            (2, 'a"b', 1, 0, 'blue', 'first flaky'), (3, 'x', 0, 0, 'red', 'not ours'),
            (4, 'y', 0, 1, 'blue', 'done before')"#,
    )
    .await;
    let mapping: Mapping = serde_json::from_str(
        r#"{"table": "\"Odd\"\"one\".\"Out;box\"", "id": ["Part", "Id"], "order": ["when"],
            "pending": {"equal": {"column": "state", "value": "0"}},
            "done": {"set": {"column": "state", "value": "1"}},
            "topic_prefix": "it's all", "key": ["tenant"], "payload": "the \"body",
            "payload_kind": "text", "headers": {"part": "Part"}, "error": "errors",
            "where": {"tenant": "blue"}}"#,
    )
    .unwrap();
    let adopted = adopt(&database, mapping).await;
    assert_eq!(adopted.table(), r#""Odd""one"."Out;box""#);
    let sink = Arc::new(Fake::default());
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 2);
    assert_eq!(sink.of_key("blue", None), ["first flaky", "second"]);
    let got = &sink.got()[0];
    assert_eq!((&*got.id, &*got.topic), (r#"["2", "a\"b"]"#, "it's all"));
    assert_eq!(got.headers.get("part"), Some("2"));
    let sql = r#"select "Part", state, errors from "Odd""one"."Out;box" order by 1"#;
    let expected =
        [["1", "1", "null"], ["2", "1", "it is"], ["3", "0", "null"], ["4", "1", "null"]];
    assert_eq!(database.rows(sql).await, expected);
}

#[test]
fn a_key_of_a_mapping_that_is_not_known_is_refused() {
    let error = serde_json::from_str::<Mapping>(r#"{"preset": "debezium", "tabel": "x"}"#);
    assert!(error.unwrap_err().to_string().contains("unknown field `tabel`"));
    let error = "debezum".parse::<Preset>().unwrap_err();
    assert!(error.to_string().contains("`entity-outbox`, `debezium`, `brighter`"), "{error}");
}
