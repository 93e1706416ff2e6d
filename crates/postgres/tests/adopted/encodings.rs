//! Databases that are not in UTF-8: what can be read is delivered, and what cannot is set aside alone.

use crate::{
    drain_to,
    sink::Fake,
    support::{Database, POSTGRES},
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tidegate_core::{
    InspectOutbox, Kind, Migrate, Outbox, WorkerId,
    migrate::Schema,
    outbox::{StuckQuery, TroubleNote, TroubledSink},
};
use tidegate_postgres::{
    Adopted, Postgres,
    adopted::{Done, Mapping, PayloadKind, Pending},
};

const TABLE: &str = "create table box (
    id text primary key, place bigserial, topic text, key text, body text, tag text, extra text,
    done boolean not null default false, error text)";

fn mapping() -> Mapping {
    let one = |name: &str| Some(vec![name.to_owned()]);
    Mapping {
        table: Some("box".to_owned()),
        id: one("id"),
        order: one("place"),
        topic: one("topic"),
        key: one("key"),
        payload: Some("body".to_owned()),
        payload_kind: Some(PayloadKind::Text),
        headers: [("tag".to_owned(), "tag".to_owned())].into(),
        headers_column: Some("extra".to_owned()),
        pending: Some(Pending::Equal { column: "done".to_owned(), value: "false".to_owned() }),
        done: Some(Done::Set { column: "done".to_owned(), value: "true".to_owned() }),
        error: Some("error".to_owned()),
        ..Mapping::default()
    }
}

async fn database(encoding: &str) -> (Database, Arc<Adopted>) {
    let database = Database::create_in(POSTGRES, encoding).await;
    database.execute(TABLE).await;
    let adopted = Adopted::open(database.url().as_str(), mapping()).await.unwrap();
    adopted.migrate().await.unwrap();
    assert_eq!(adopted.schema().await.unwrap(), Schema::Current);
    (database, Arc::new(adopted))
}

/// A row as bytes: id, topic, key, body, tag.
type Bytes = [Vec<u8>; 5];

/// Writes rows as an application does that has the database's encoding.
async fn write(database: &Database, encoding: &str, rows: &[Bytes]) {
    let client = database.client().await;
    let text = |n: usize| format!("convert_from(${n}::bytea, '{encoding}')");
    let values: Vec<String> = (1..=5).map(text).collect();
    let sql = format!("insert into box (id, topic, key, body, tag) values ({})", values.join(", "));
    let statement = client.prepare(&sql).await.unwrap();
    for [id, topic, key, body, tag] in rows {
        client.execute(&statement, &[id, topic, key, body, tag]).await.unwrap();
    }
}

fn decoded(encoding: &str, bytes: &[u8]) -> Option<String> {
    match encoding {
        "LATIN1" => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        // All but five bytes are characters; of these, those that differ from LATIN1 are left out by the test.
        "WIN1252" if bytes.iter().any(|byte| [0x81, 0x8d, 0x8f, 0x90, 0x9d].contains(byte)) => None,
        "WIN1252" => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

/// Bytes that the encoding allows, mostly letters.
fn bytes(encoding: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let byte = match encoding {
        "WIN1252" => prop_oneof![8 => b'A'..=b'Z', 1 => Just(b'\\'), 3 => 0xa0..=0xff_u8, 1 => Just(0x81_u8)].boxed(),
        _ => prop_oneof![8 => b'A'..=b'Z', 1 => Just(b'\\'), 1 => 0x21..=0x7e_u8, 2 => 0x80..=0xff_u8].boxed(),
    };
    let text = "[A-Zäß→\\\\]{1,6}".prop_map(String::into_bytes);
    let random = prop::collection::vec(byte, 1..6);
    match encoding {
        "SQL_ASCII" => prop_oneof![text, random].boxed(),
        _ => random.boxed(),
    }
}

fn rows(encoding: &'static str) -> impl Strategy<Value = Vec<Bytes>> {
    let row = prop::array::uniform5(bytes(encoding));
    prop::collection::vec(row, 1..40).prop_map(|mut rows| {
        for (n, row) in rows.iter_mut().enumerate() {
            // Ids differ, and no topic is refused for what it is made of.
            row[0].extend(format!("-{n}").into_bytes());
            row[1].retain(|byte| *byte != b'*' && !(0x80..0xa0).contains(byte) || *byte == 0x81);
            row[1].push(b't');
        }
        rows
    })
}

/// What is to be delivered of these rows: those of which every text can be decoded.
fn expected(encoding: &str, rows: &[Bytes]) -> BTreeSet<(String, String, String)> {
    let read = |row: &Bytes| {
        let text = |n: usize| decoded(encoding, &row[n]);
        text(4)?;
        Some((text(1)?, text(2)?, text(3)?))
    };
    let is_topic = |it: &(String, String, String)| !it.0.chars().any(char::is_control);
    rows.iter().filter_map(read).filter(is_topic).collect()
}

async fn check(encoding: &'static str, rows: Vec<Bytes>) {
    let (database, adopted) = database(encoding).await;
    write(&database, encoding, &rows).await;
    let sink = Arc::new(Fake::default());
    let counts = drain_to(&adopted, &sink).await;
    let seen = sink.got().into_iter().map(|it| (it.topic, it.key.unwrap_or_default(), it.payload));
    assert_eq!(seen.collect::<BTreeSet<_>>(), expected(encoding, &rows), "{encoding}: {rows:?}");
    let dead = adopted.stuck(StuckQuery { limit: 100, ..StuckQuery::default() }).await.unwrap();
    assert_eq!((counts.delivered as usize) + dead.len(), rows.len(), "{encoding}: {rows:?}");
    assert!(dead.iter().all(|it| !it.reason.is_empty()));
    // Nothing is pending but what is dead, and people can look at all of it.
    let pending = database.rows("select count(*) from box where not done").await;
    assert_eq!(pending, [[dead.len().to_string()]]);
    adopted.outbox().await.unwrap();
    adopted.shadow().await.unwrap();
    for stuck in &dead {
        adopted.message(stuck.id.clone()).await.unwrap().unwrap();
    }
}

/// Draws rows, and carries them through a whole relay.
async fn check_random(encoding: &'static str) {
    let mut runner = TestRunner::default();
    for _ in 0..8 {
        let rows = rows(encoding).new_tree(&mut runner).unwrap().current();
        check(encoding, rows).await;
    }
}

#[tokio::test]
async fn whatever_is_in_a_database_without_an_encoding_one_bad_row_stops_no_other() {
    check_random("SQL_ASCII").await;
}

#[tokio::test]
async fn whatever_is_in_a_latin1_database_is_delivered() {
    check_random("LATIN1").await;
}

#[tokio::test]
async fn characters_that_an_encoding_lacks_stop_no_other_row() {
    check_random("WIN1252").await;
}

/// What a sink says about a failure may have characters that the database does not know.
#[tokio::test]
async fn reasons_of_failures_fit_every_encoding() {
    for encoding in ["LATIN1", "SQL_ASCII", "WIN1251"] {
        let (database, adopted) = database(encoding).await;
        let row = ["1", "t", "k", "a strange one", "tag"].map(|text| text.as_bytes().to_vec());
        write(&database, encoding, &[row]).await;
        let sink = Arc::new(Fake::default());
        drain_to(&adopted, &sink).await;
        let dead = adopted.stuck(StuckQuery { limit: 100, ..StuckQuery::default() }).await.unwrap();
        assert_eq!(dead.len(), 1);
        assert!(dead[0].reason.contains("it says"), "{encoding}: {}", dead[0].reason);
    }
}

/// And so may why it takes nothing.
#[tokio::test]
async fn notes_about_sinks_fit_every_encoding() {
    for encoding in ["LATIN1", "SQL_ASCII", "WIN1251"] {
        let (_database, adopted) = database(encoding).await;
        let (sink, reason) = ("s".to_owned(), "it says: ä→漢\u{1f980}".to_owned());
        let sinks = vec![TroubledSink { sink, reason, lasts: Duration::ZERO }];
        let (relay, valid) = (WorkerId("r".to_owned()), Duration::from_secs(60));
        adopted.note_sinks(TroubleNote { relay, sinks, valid }).await.unwrap();
        let noted = adopted.outbox().await.unwrap().sinks;
        assert!(
            noted.len() == 1 && noted[0].reason.starts_with("it says"),
            "{encoding}: {noted:?}"
        );
    }
}

#[tokio::test]
async fn a_store_in_another_encoding_is_refused_with_advice() {
    for encoding in ["SQL_ASCII", "LATIN1"] {
        let database = Database::create_in(POSTGRES, encoding).await;
        let store = Postgres::connect(database.url().as_str()).await.unwrap();
        let refused = store.migrate().await.unwrap_err();
        assert_eq!(refused.kind(), Kind::Refused);
        let text = refused.to_string();
        assert!(text.contains(encoding) && text.contains("encoding 'UTF8'"), "{text}");
        assert_eq!(store.schema().await.unwrap(), Schema::Missing, "nothing was made");
        // One that was made by an earlier version, or for a table of an application.
        database.execute(&tidegate_postgres::script()).await;
        assert_eq!(store.schema().await.unwrap_err().kind(), Kind::Refused);
    }
}
