//! Publishing in an application's own transaction: with our function, and with plain SQL.

use crate::{outbox::Relay, store};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use tidegate_core::{InspectOutbox, Kind, Message, NewMessage, Outbox, Publish};

fn new_message(key: &str) -> NewMessage {
    NewMessage {
        topic: "t".to_owned(),
        key: Some(key.to_owned()),
        payload: b"{}".to_vec(),
        ..NewMessage::default()
    }
}

/// An application with a table of its own in the same file.
fn application(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("CREATE TABLE IF NOT EXISTS theirs (a)").unwrap();
    connection
}

fn keys(messages: &[Message]) -> Vec<&str> {
    messages.iter().filter_map(|message| message.key.as_deref()).collect()
}

#[tokio::test]
async fn a_message_is_there_if_and_when_the_transaction_commits() {
    let (_directory, path, store) = store().await;
    let relay = Relay::start(&store).await;
    let mut application = application(&path);
    let mut published = Vec::new();
    for commits in [true, false, true] {
        let transaction =
            application.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        transaction.execute("INSERT INTO theirs VALUES (1)", []).unwrap();
        let messages = [new_message("one"), new_message("two")];
        let ids = tidegate_sqlite::publish(&transaction, &messages).unwrap();
        assert_eq!(relay.read().await.len(), published.len(), "not before");
        match commits {
            true => {
                transaction.commit().unwrap();
                published.extend(ids);
            }
            false => transaction.rollback().unwrap(),
        }
        let read: Vec<_> = relay.read().await.iter().map(|message| message.id.clone()).collect();
        assert_eq!(read, published);
    }
    let rows: i64 = application.query_row("SELECT count(*) FROM theirs", [], |r| r.get(0)).unwrap();
    assert_eq!(rows, 2);
}

#[tokio::test]
async fn our_function_refuses_what_the_store_refuses() {
    let (_directory, path, store) = store().await;
    store.limit_outstanding(Some(1)).await.unwrap();
    let mut application = application(&path);
    let transaction = application.transaction().unwrap();
    let publish = |message| tidegate_sqlite::publish(&transaction, &[message]);
    let bad = NewMessage { topic: String::new(), ..new_message("k") };
    assert_eq!(publish(bad).unwrap_err().kind(), Kind::Refused);
    publish(new_message("k")).unwrap();
    assert_eq!(publish(new_message("k")).unwrap_err().kind(), Kind::Full);
    transaction.commit().unwrap();
    assert_eq!(Relay::start(&store).await.read().await.len(), 1);
}

#[tokio::test]
async fn plain_sql_publishes_as_our_function_does() {
    let (_directory, path, store) = store().await;
    let relay = Relay::start(&store).await;
    let strange = ["a", "42", " ", "größer", "日本語", "a key with many characters", "🦀"];
    store.publish(strange.iter().map(|key| new_message(key)).collect()).await.unwrap();
    let application = application(&path);
    let sql = "INSERT INTO outbox (topic, key, payload, headers) VALUES (?1, ?2, ?3, ?4)";
    for key in strange {
        application.execute(sql, ("t", key, "{}", None::<&str>)).unwrap();
    }
    application.execute(sql, ("t", 42, "{\"a\": 1}", "{\"X-Trace\": \"é\"}")).unwrap();
    let text = "{\"Content-Type\": \"text/plain\"}";
    application.execute(sql, ("t", None::<&str>, b"no json", text)).unwrap();
    let read = relay.read().await;
    let (ours, theirs) = read.split_at(strange.len());
    assert_eq!(keys(ours), keys(&theirs[..strange.len()]));
    for (one, other) in ours.iter().zip(theirs) {
        assert_eq!((one.lane, &one.payload), (other.lane, &other.payload));
        assert!(other.published_ms.abs_diff(one.published_ms) < 60_000);
    }
    assert_eq!((read[14].key.as_deref(), read[14].lane), (Some("42"), ours[1].lane));
    assert_eq!(read[14].headers.get("x-trace"), Some("é"));
    assert_eq!((read[15].key.as_deref(), read[15].payload.as_slice()), (None, &b"no json"[..]));
    assert_eq!(i64::from(read[15].lane.0), read[15].position.0 % 64);
}

#[tokio::test]
async fn plain_sql_is_refused_with_the_reason() {
    let (_directory, path, store) = store().await;
    let application = application(&path);
    let refused = |columns: &str, values: &str, reason: &str| {
        let sql = format!("INSERT INTO outbox ({columns}) VALUES ({values})");
        let error = application.execute(&sql, []).expect_err(values).to_string();
        assert!(error.contains(reason), "{values}: {error}");
    };
    for topic in ["NULL", "''", "'a*b'", "'a' || char(10)", "'a' || char(0)", "'a' || char(133)"] {
        refused("topic, payload", &format!("{topic}, '1'"), "a topic has at least one character");
    }
    let long = |bytes: usize| format!("CAST(zeroblob({bytes}) AS TEXT)");
    let text = |bytes: usize| format!("replace(hex(zeroblob({bytes})), '00', 'x')");
    refused("topic, payload", &format!("{}, '1'", text(256)), "255 bytes are the most");
    refused("topic, key, payload", &format!("'t', {}, '1'", text(1025)), "1024 bytes");
    let keys = ["''", "'a' || char(10)", "'a' || char(127)", "char(133)", &long(3)];
    for key in keys {
        refused(
            "topic, key, payload",
            &format!("'t', {key}, '1'"),
            "a key has at least one character",
        );
    }
    for key in ["x'41'", "CAST(x'ff41' AS TEXT)", "CAST(x'41c3' AS TEXT)"] {
        refused("topic, key, payload", &format!("'t', {key}, '1'"), "a key is text");
        refused("topic, payload", &format!("{key}, '1'"), "a topic is text");
    }
    for value in ["\\ud800", "\\udc00\\ud800", "' || CAST(x'ff' AS TEXT) || '"] {
        let values = format!("'t', '1', '{{\"a\": \"{value}\"}}'");
        refused("topic, payload, headers", &values, "a header is text");
    }
    for header in ["\"a\": \"\\u0000\"", "\"\\\\\\u0000\": \"b\""] {
        let values = format!("'t', '1', '{{{header}}}'");
        refused("topic, payload, headers", &values, "a header must not contain NUL");
    }
    refused("topic, payload", "'t', NULL", "a message has a payload");
    refused("topic", "'t'", "a message has a payload");
    refused("topic, payload", "'t', zeroblob(1048577)", "1048576 bytes");
    for headers in ["'x'", "'[]'", "'{\"a\": 1}'", "'{\"a\": {}}'", "''"] {
        let values = format!("'t', '1', {headers}");
        refused("topic, payload, headers", &values, "headers are an object of strings");
    }
    let wide = format!("'t', '1', '{{\"a\": \"' || {} || '\"}}'", text(8192));
    refused("topic, payload, headers", &wide, "8192 bytes");
    refused("topic, payload", "'t', '{no json}'", "the payload is no JSON");
    for media_type in ["application/json", "Application/JSON; charset=utf-8", "x/y+json"] {
        let values = format!("'t', 'x', '{{\"Content-Type\": \"{media_type}\"}}'");
        refused("topic, payload, headers", &values, "the payload is no JSON");
    }
    store.limit_outstanding(Some(1)).await.unwrap();
    store.publish(vec![new_message("k")]).await.unwrap();
    refused("topic, payload", "'t', '1'", "too many messages are outstanding");
    assert_eq!(store.outbox().await.unwrap().topics[0].outstanding, 1);
    assert!(application.execute("DELETE FROM outbox", []).is_err(), "it is append only");
}

#[tokio::test]
async fn the_view_tells_what_became_of_each_message() {
    let (_directory, path, store) = store().await;
    let relay = Relay::start(&store).await;
    relay.publish(3).await;
    let messages = relay.read().await;
    relay.set_all_aside(&messages[..1]).await;
    relay.publish(1).await;
    let application = application(&path);
    let mut query = application.prepare("SELECT key, payload, state FROM outbox").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(String, String, String)> = rows.collect::<Result<_, _>>().unwrap();
    let states: Vec<&str> = rows.iter().map(|(_, _, state)| state.as_str()).collect();
    assert_eq!(states, ["retry", "sent", "sent", "outstanding"]);
    assert_eq!((rows[0].0.as_str(), rows[0].1.as_str()), ("key 0", "{}"));
}

#[tokio::test]
async fn publishing_wakes_a_relay_in_this_process() {
    let (_directory, _path, store) = store().await;
    let relay = Relay::start(&store).await;
    relay.publish(1).await;
    store.published().await;
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.published().await }
    });
    tokio::task::yield_now().await;
    relay.publish(1).await;
    waiting.await.unwrap();
}

#[tokio::test]
async fn a_name_is_unique_among_outboxes() {
    let mut names = Vec::new();
    for _ in 0..2 {
        let (_directory, _path, store) = store().await;
        let relay = Relay::start(&store).await;
        relay.publish(1).await;
        let name = relay.read().await.remove(0).name;
        let parts: Vec<&str> = name.split('-').collect();
        let [outbox, published, "1"] = parts[..] else { panic!("{name}") };
        assert!(outbox.len() == 10 && u64::from_str_radix(published, 16).is_ok(), "{name}");
        names.push(name);
    }
    assert_ne!(names[0], names[1]);
}
