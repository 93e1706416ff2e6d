//! Tables of Brighter, of its versions 10 and 9.

use crate::{
    adopt, database, drain_to,
    sink::{Fake, Got},
    support::Database,
};
use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};
use tidegate_core::{InspectOutbox, outbox::StuckQuery, sink::Item};
use tidegate_postgres::{
    Adopted,
    adopted::{Mapping, Preset},
};
use tidegate_sinks::brighter::{Message, redis::frame};

const V10: &str = "create table outbox (id bigserial primary key, messageid varchar(255) unique not null,
    topic varchar(255), messagetype varchar(32), timestamp timestamptz, correlationid varchar(255),
    replyto varchar(255), contenttype varchar(128), partitionkey varchar(128), workflowid varchar(255),
    jobid varchar(255), dispatched timestamptz, headerbag text, body text, source varchar(255),
    type varchar(255), dataschema varchar(255), subject varchar(255), traceparent varchar(255),
    tracestate varchar(255), baggage text, dataref varchar(255), causationid varchar(255),
    specversion varchar(255))";

const V9: &str = "create table outbox (id bigserial primary key, messageid uuid unique not null,
    topic varchar(255), messagetype varchar(32), timestamp timestamptz, correlationid uuid,
    replyto varchar(255), contenttype varchar(128), dispatched timestamptz, headerbag text, body text)";

async fn open(database: &Database) -> Arc<Adopted> {
    adopt(database, Mapping::of(Preset::Brighter)).await
}

/// A row with a key, published so long ago.
async fn deposit(database: &Database, id: &str, age: &str) {
    let sql = format!(
        "insert into outbox (messageid, topic, messagetype, timestamp, partitionkey, body)
        values ('{id}', 'greeting', 'MT_EVENT', now() - interval '{age}', 'k', '{id}')"
    );
    database.execute(&sql).await;
}

fn ids(sink: &Fake) -> Vec<String> {
    sink.got().into_iter().map(|got| got.id).collect()
}

fn own(got: &Got) -> Vec<(&str, &str)> {
    got.headers.iter_own().collect()
}

#[tokio::test]
async fn a_row_has_all_that_its_columns_say() {
    let database = database(V10).await;
    database
        .execute(
            r#"insert into outbox (messageid, topic, messagetype, timestamp, correlationid, replyto,
                contenttype, partitionkey, workflowid, jobid, headerbag, body, source, type, dataschema,
                subject, traceparent, tracestate, baggage, causationid)
            values ('m1', 'greeting', 'MT_COMMAND', '2026-01-02 03:04:05.678999Z', 'c1', 'replies',
                'application/json; charset=utf-8', 'k', 'w1', 'j1',
                '{"SessionId":"s-1","tries":3,"CONTENT-TYPE":"of the bag",
                    "paramore.brighter.ProducerTopic":"local"}',
                '{"n":1}', 'urn:x', 'Greeted', 'urn:s', 'sub', '00-1', 'a=b', 'c=d', 'z1')"#,
        )
        .await;
    let (adopted, sink) = (open(&database).await, Arc::new(Fake::default()));
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 1);
    let got = &sink.got()[0];
    assert_eq!((&*got.id, &*got.topic, got.key.as_deref()), ("m1", "greeting", Some("k")));
    assert_eq!(got.published_ms, 1_767_323_045_678, "cut, not rounded");
    let expected = [
        ("baggage", "c=d"),
        ("causation-id", "z1"),
        ("ce-dataschema", "urn:s"),
        ("ce-source", "urn:x"),
        ("ce-subject", "sub"),
        ("ce-type", "Greeted"),
        ("content-type", "application/json; charset=utf-8"),
        ("correlation-id", "c1"),
        ("job-id", "j1"),
        ("message-type", "MT_COMMAND"),
        ("reply-to", "replies"),
        ("traceparent", "00-1"),
        ("tracestate", "a=b"),
        ("workflow-id", "w1"),
    ];
    assert_eq!(own(got), expected);
    let bag: Vec<_> = got.headers.further().unwrap().collect();
    let expected = [("SessionId", "\"s-1\""), ("tries", "3"), ("CONTENT-TYPE", "\"of the bag\"")];
    assert_eq!(bag, expected, "with types, and without what is local");
    assert_eq!(got.headers.get("paramore.brighter.ProducerTopic"), None);
    assert_eq!(got.headers.get("sessionid"), Some("s-1"));
    let header = concat!(
        r#"{"Id":"m1","TimeStamp":"2026-01-02T03:04:05.678Z","Topic":"greeting","#,
        r#""MessageType":"MT_COMMAND","HandledCount":"0","DelayedMilliseconds":"0","#,
        r#""Bag":"{\"SessionId\":\"s-1\",\"tries\":3,\"CONTENT-TYPE\":\"of the bag\"}","#,
        r#""ReplyTo":"replies","ContentType":"application/json; charset=utf-8","#,
        r#""CorrelationId":"c1","cloudevents:source":"urn:x","cloudevents:type":"Greeted","#,
        r#""cloudevents:baggage":"c=d","cloudevents:dataschema":"urn:s","#,
        r#""cloudevents:subject":"sub","cloudevents:traceparent":"00-1","#,
        r#""cloudevents:tracestate":"a=b"}"#,
    );
    let expected = format!("<HEADER \n{header}\n HEADER/>\n<BODY\n{{\"n\":1}}\nBODY/>");
    assert_eq!(as_frame(got), expected, "as Brighter's consumers read it");
}

/// What a sink with Brighter's envelope makes of it.
fn as_frame(got: &Got) -> String {
    let published = UNIX_EPOCH + Duration::from_millis(got.published_ms as u64);
    let item = Item {
        topic: &got.topic,
        key: got.key.as_deref(),
        headers: &got.headers,
        published_at: Some(published),
        ..Item::record(&got.id, &got.payload)
    };
    frame(&Message::read(&item, UNIX_EPOCH).unwrap()).unwrap()
}

#[tokio::test]
async fn what_is_null_or_empty_has_the_defaults_of_brighter() {
    let database = database(V10).await;
    database
        .execute(
            "insert into outbox (messageid, topic, correlationid, partitionkey, replyto, baggage, type,
                headerbag, body)
            values ('m1', 'greeting', '', '', '', '', '', 'null', 'hi')",
        )
        .await;
    let (adopted, sink) = (open(&database).await, Arc::new(Fake::default()));
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 1);
    let got = &sink.got()[0];
    assert_eq!(own(got), [("content-type", "text/plain"), ("message-type", "MT_NONE")]);
    assert_eq!(got.key, None);
}

#[tokio::test]
async fn a_table_of_version_9_has_uuids_and_no_key() {
    let database = database(V9).await;
    let (id, correlation) =
        ("5a2b7c1e-3b58-4d3f-9f6e-0d6a6f1f6a01", "0f8fad5b-d9cb-469f-a165-70867728950e");
    let sql = format!(
        "insert into outbox (messageid, topic, messagetype, timestamp, correlationid, body)
        values ('{id}', 'greeting', 'MT_EVENT', now(), '{correlation}', 'hi')"
    );
    database.execute(&sql).await;
    let adopted = open(&database).await;
    assert!(adopted.remarks().iter().any(|it| it.contains("messages have no key")));
    let sink = Arc::new(Fake::default());
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 1);
    let got = &sink.got()[0];
    assert_eq!((&*got.id, got.headers.get("correlation-id")), (id, Some(correlation)));
    assert_eq!(database.rows("select count(dispatched) from outbox").await, [["1"]]);
}

#[tokio::test]
async fn a_body_is_sent_unchanged_whatever_its_content_type_declares() {
    let database = database(V10).await;
    database
        .execute(
            "insert into outbox (messageid, topic, messagetype, contenttype, body)
            values ('m1', 'greeting', 'MT_EVENT', 'application/json', 'AAECAw==')",
        )
        .await;
    let (adopted, sink) = (open(&database).await, Arc::new(Fake::default()));
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 1);
    assert_eq!(sink.got()[0].payload, "AAECAw==");
}

#[tokio::test]
async fn a_bag_that_is_no_object_makes_the_row_dead_alone() {
    let database = database(V10).await;
    deposit(&database, "good", "1 s").await;
    deposit(&database, "odd", "1 s").await;
    database.execute("update outbox set headerbag = '[1]' where messageid = 'odd'").await;
    let (adopted, sink) = (open(&database).await, Arc::new(Fake::default()));
    let counts = drain_to(&adopted, &sink).await;
    assert_eq!((counts.delivered, ids(&sink)), (1, vec!["good".to_owned()]));
    let stuck = adopted.stuck(StuckQuery { limit: 10, ..StuckQuery::default() }).await.unwrap();
    assert_eq!(stuck[0].reason, "its headers are no JSON object");
}

#[tokio::test]
async fn rows_that_are_too_young_are_left_to_the_application() {
    let database = database(V10).await;
    deposit(&database, "young", "0 s").await;
    deposit(&database, "old", "10 min").await;
    deposit(&database, "timeless", "10 min").await;
    database.execute("update outbox set timestamp = null where messageid = 'timeless'").await;
    let min_age = Some(Duration::from_secs(300));
    let adopted = adopt(&database, Mapping { min_age, ..Mapping::of(Preset::Brighter) }).await;
    let sink = Arc::new(Fake::default());
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 2);
    assert_eq!(ids(&sink), ["old", "timeless"]);
    let sql = "update outbox set timestamp = now() - interval '301 s' where messageid = 'young'";
    database.execute(sql).await;
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 1);
}

#[tokio::test]
async fn who_else_sends_is_told_at_the_start() {
    let database = database(V10).await;
    let said = |adopted: &Adopted| adopted.remarks().join("\n");
    let plain = said(&*open(&database).await);
    assert!(plain.contains("`Post` or `ClearOutbox` send their messages themselves"), "{plain}");
    assert!(plain.contains("deposit without clearing and stop the sweeper, or set `min_age`"));
    let min_age = Some(Duration::from_secs(5));
    let aged = adopt(&database, Mapping { min_age, ..Mapping::of(Preset::Brighter) }).await;
    assert!(said(&aged).contains("rows of the last 5 s are left to applications"));
}

#[tokio::test]
async fn a_minimum_age_needs_a_time() {
    let database = database(
        "create table outbox (id bigserial primary key, messageid varchar(255) unique not null,
            topic varchar(255), dispatched timestamptz, headerbag text, body text)",
    )
    .await;
    let min_age = Some(Duration::from_secs(5));
    let mapping = Mapping { min_age, ..Mapping::of(Preset::Brighter) };
    let refused = Adopted::open(database.url().as_str(), mapping).await.err().unwrap().to_string();
    assert!(refused.contains("name the column with its time in `published_at`"), "{refused}");
}

#[tokio::test]
async fn a_row_that_is_replayed_is_sent_again() {
    let database = database(V10).await;
    deposit(&database, "a", "1 s").await;
    deposit(&database, "b", "1 s").await;
    let (adopted, sink) = (open(&database).await, Arc::new(Fake::default()));
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 2);
    database.execute("update outbox set dispatched = null where messageid = 'a'").await;
    assert_eq!(drain_to(&adopted, &sink).await.delivered, 1);
    assert_eq!(ids(&sink), ["a", "b", "a"]);
    assert_eq!(database.rows("select count(dispatched) from outbox").await, [["2"]]);
}
