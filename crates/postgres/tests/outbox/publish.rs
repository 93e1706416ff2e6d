//! Publishing: in whose transaction, in which ways, and what is refused.

use super::*;
use proptest::{
    prelude::*,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};

#[tokio::test]
async fn messages_are_published_in_the_callers_transaction() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    let mut client = database.client().await;
    run(&client, "create table theirs (a int)").await;
    let mut published = Vec::new();
    for commits in [true, false, true] {
        let transaction = client.transaction().await.unwrap();
        transaction.execute("insert into theirs values (1)", &[]).await.unwrap();
        let messages = [new_message("k"), new_message("l")];
        let ids = tidegate_postgres::publish(&transaction, &messages).await.unwrap();
        match commits {
            true => {
                transaction.commit().await.unwrap();
                published.extend(ids.iter().filter_map(|id| id.as_number()));
            }
            false => transaction.rollback().await.unwrap(),
        }
    }
    assert_eq!(relay.ids().await, published);
    let transaction = client.transaction().await.unwrap();
    let bad = NewMessage { topic: String::new(), ..new_message("k") };
    let error = tidegate_postgres::publish(&transaction, &[bad]).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
}

#[tokio::test]
async fn plain_sql_publishes_in_all_its_ways() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let relay = Relay::start(&store).await;
    store.publish(vec![new_message("k")]).await.unwrap();
    let sql = "select tidegate.publish('t', 'k', '{\"a\": 1}');
        select tidegate.publish_bytes('t', 'k', '\\x00ff', '{\"Content-Type\": \"x/y\"}');
        select * from tidegate.publish_many(array['t', 't'], array['k', null],
            array['1', '2']::jsonb[]);
        select * from tidegate.publish_many_bytes(array['t'], array['k'], array['\\x33'::bytea],
            array['{\"a\": \"b\"}'::jsonb], array[now() + interval '1 hour'])";
    run(&database.client().await, sql).await;
    let read = relay.read().await;
    let payloads: Vec<&[u8]> = read.iter().map(|message| message.payload.as_slice()).collect();
    assert_eq!(payloads, [b"{}", &b"{\"a\": 1}"[..], b"\x00\xff", b"1", b"2", b"3"]);
    assert_eq!(read[2].headers.get("content-type"), Some("x/y"));
    let lanes: Vec<_> = read.iter().filter(|m| m.key.is_some()).map(|m| m.lane).collect();
    assert!(lanes.iter().all(|lane| *lane == lanes[0]), "one key, one lane: {lanes:?}");
    let states = "select distinct state from tidegate.messages";
    assert_eq!(database.rows(states).await, [["outstanding"]]);
    database.execute("select tidegate.publish_bytes('t', 'no text', '\\xff')").await;
    let texts = "select payload_text from tidegate.messages order by id desc limit 2";
    assert_eq!(database.rows(texts).await.concat(), ["null", "3"]);
}

#[tokio::test]
async fn plain_sql_is_refused_with_the_reason() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let client = database.client().await;
    let refused = async |arguments: &str, code: &str, reason: &str| {
        let sql = format!("select tidegate.publish_bytes({arguments})");
        let error = client.batch_execute(&sql).await.expect_err(arguments);
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), code, "{error}");
        assert!(error.message().contains(reason), "{arguments}: {error}");
    };
    refused("'t', 'k', null", "TG400", "a message has a payload").await;
    refused("'t', 'k', convert_to(repeat('x', 1048577), 'UTF8')", "TG400", "1048576").await;
    refused("'t', 'k', '', '[]'", "TG400", "headers are an object of strings").await;
    refused("'t', 'k', '', '{\"a\": 1}'", "TG400", "headers are an object of strings").await;
    let wide = "'t', 'k', '', jsonb_build_object('a', repeat('x', 8192))";
    refused(wide, "TG400", "8192 is the most").await;
    store.limit_outstanding(Some(1)).await.unwrap();
    store.publish(vec![new_message("k")]).await.unwrap();
    refused("'t', 'k', ''", "TG429", "1 is the limit").await;
    store.limit_outstanding(None).await.unwrap();
    let refused_many = async |arguments: &str, reason: &str| {
        let sql = format!("select tidegate.publish_many_bytes({arguments})");
        let error = client.batch_execute(&sql).await.expect_err(arguments);
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "TG400", "{error}");
        assert!(error.message().contains(reason), "{arguments}: {error}");
    };
    refused_many("array['t', 't'], array['k'], array[''::bytea]", "unequal lengths").await;
    let flawed = [
        ("null", "'k'", "at least one character"),
        ("''", "'k'", "at least one character"),
        ("'a*'", "'k'", "at least one character"),
        ("E'a\\n'", "'k'", "at least one character"),
        ("repeat('t', 256)", "'k'", "255 is the most"),
        ("repeat('ü', 128)", "'k'", "the topic has 256 bytes; 255 is the most"),
        ("U&'a\\0085'", "'k'", "at least one character"),
        ("'t'", "repeat('k', 1025)", "1024 is the most"),
        ("'t'", "''", "a key has at least one character and no control characters"),
        ("'t'", "E'a\\nb'", "leave it out for no order"),
        ("'t'", "chr(1)", "leave it out for no order"),
        ("'t'", "U&'\\009f'", "leave it out for no order"),
        ("E't\\u0001t'", "'k'", "at least one character"),
    ];
    for (topic, key, reason) in flawed {
        refused_many(
            &format!("array['t', {topic}], array['k', {key}], array['', '']::bytea[]"),
            reason,
        )
        .await;
        refused(&format!("{topic}, {key}, ''"), "TG400", reason).await;
        refused(&format!("{topic}, {key}, '', '{{}}'"), "TG400", reason).await;
    }
    for declared in ["application/json", "Application/JSON; charset=utf-8", "a/b+json"] {
        let headers = format!("jsonb_build_object('Content-Type', '{declared}')");
        refused(&format!("'t', 'k', '{{x', {headers}"), "TG400", "is no JSON").await;
        refused(&format!("'t', 'k', '\\x80', {headers}"), "TG400", "is no JSON").await;
        let many = format!(
            "select tidegate.publish_many_bytes(array['t'], array['k'], array['1'::bytea], array[{headers}])"
        );
        client.batch_execute(&many).await.unwrap();
        let error = client.batch_execute(&many.replace("'1'", "'{'")).await.unwrap_err();
        assert!(error.as_db_error().unwrap().message().contains("is no JSON"), "{error}");
    }
}

/// Versions before did not look at them. However long they are, claims come past them: what is to become of them is
/// up to the relay.
#[tokio::test]
async fn topics_and_keys_without_measure_are_read() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    database
        .execute(
            "insert into tidegate.message_0 (id, topic, key, payload)
                select nextval('tidegate.message_id'), t, k, '' from (values ('', 'a'), ('a*', 'b'), (E'a\\n', 'c'),
                (repeat('t', 256), 'd'), ('t', repeat('k', 20000000)), (repeat('t', 20000000), 'e'), ('t', 'f')) as m (t, k)",
        )
        .await;
    let relay = Relay::start(&store).await;
    assert_eq!(relay.ids().await, [1, 2, 3, 4, 5, 6, 7]);
}

/// Readers wait for transactions with lower numbers only: they would pass over an id that was drawn before.
#[tokio::test]
async fn a_transaction_has_its_number_before_its_message_has_an_id() {
    let database = Database::create(POSTGRES).await;
    database.store().await;
    for headers in ["null", "'{}'"] {
        let (holder, publisher) = (database.client().await, database.client().await);
        run(&holder, "begin; lock table tidegate.message_0 in share mode").await;
        let publish = format!("select tidegate.publish('t', 'k', '1', {headers})");
        let publishing = async { run(&publisher, &publish).await };
        let watching = async {
            let waits = "select backend_xid is not null from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock'";
            let number = loop {
                if let Some(row) = database.rows(waits).await.pop() {
                    break row;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            };
            run(&holder, "commit").await;
            number
        };
        let ((), number) = tokio::join!(publishing, watching);
        assert_eq!(number, ["t"], "{headers}");
    }
}

/// Names of every length and with every kind of character, near the limits and far from them.
fn names() -> impl Strategy<Value = String> {
    let characters = prop_oneof![
        8 => Just('a'),
        2 => any::<char>(),
        1 => prop::sample::select(vec!['*', '\u{1}', '\n', '\u{1f}', ' ', '~', '\u{7f}', '\u{80}', '\u{9f}',
            '\u{a0}', '\u{ad}', '\u{200b}', '\u{2028}', '\u{feff}', '\\', '\'', '"', '%']),
    ];
    let edge = prop_oneof![Just(255_usize), Just(256), Just(1_024), Just(1_025), 0..4_usize];
    let long =
        (edge, prop::sample::select(vec!["a", "ü", "中", "🌊"])).prop_map(|(bytes, part)| {
            part.repeat(bytes / part.len()) + &"a".repeat(bytes % part.len())
        });
    let text =
        prop_oneof![prop::collection::vec(characters, 0..6).prop_map(String::from_iter), long];
    text.prop_map(|text| text.replace('\0', ""))
}

/// JSON of so many bytes, but at least one.
fn json_of(bytes: usize) -> Vec<u8> {
    let mut json = vec![b' '; bytes.max(1)];
    json[0] = b'1';
    json
}

fn any_headers() -> impl Strategy<Value = Vec<(String, String)>> {
    let declared = ["application/json", "Application/JSON; x=y", "a/b+json", "text/plain", "json"];
    let kind = prop::sample::select(declared.to_vec())
        .prop_map(|kind| vec![("Content-Type".to_owned(), kind.to_owned())]);
    let wide = (8_170..8_200_usize).prop_map(|bytes| vec![("a".to_owned(), "x".repeat(bytes))]);
    prop_oneof![Just(Vec::new()), kind, wide]
}

fn any_message() -> impl Strategy<Value = NewMessage> {
    let payloads = ["", "{}", "1", "{", "nul", "[1, 2", "\"\\ud800\"", " 3 ", "01", "é"];
    let payload = prop_oneof![
        9 => prop::sample::select(payloads.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => Just(vec![0xff]),
        1 => (1_048_575..1_048_578_usize).prop_map(json_of),
    ];
    (names(), prop::option::of(names()), payload, any_headers()).prop_map(
        |(topic, key, payload, headers)| {
            let headers = headers.into_iter().collect();
            NewMessage { topic, key, payload, headers, delay: None }
        },
    )
}

/// An application in any language is refused what Rust refuses, and nothing else, in every way of publishing.
#[tokio::test]
async fn every_way_of_publishing_refuses_the_same() {
    let database = Database::create(POSTGRES).await;
    database.store().await;
    let client = database.client().await;
    let mut runner = TestRunner::deterministic();
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..400 {
        let message = any_message().new_tree(&mut runner).unwrap().current();
        // Where nothing is declared, bytes may be anything.
        let mut declared = message.clone();
        if message.headers.get("content-type").is_none() {
            declared.payload = json_of(message.payload.len());
        }
        let sound = declared.check().is_ok();
        let is_flawed = |name: &str| name.is_empty() || name.chars().any(char::is_control);
        if is_flawed(&message.topic) || message.key.as_deref().is_some_and(is_flawed) {
            assert!(!sound, "{message:?}");
        }
        *(if sound { &mut taken } else { &mut refused }) += 1;
        let headers = (!message.headers.is_empty())
            .then(|| serde_json::to_value(&message.headers).unwrap().to_string());
        let ways = [
            "select tidegate.publish_bytes($1, $2, $3, $4::text::jsonb)",
            "select tidegate.publish_many_bytes(array[$1::text], array[$2::text], array[$3::bytea],
                array[$4::text::jsonb])",
        ];
        for sql in ways {
            let NewMessage { topic, key, payload, .. } = &message;
            let answer = client.query(sql, &[topic, key, payload, &headers]).await;
            assert_eq!(answer.is_ok(), sound, "{sql}: {message:?}: {answer:?}");
            if let Err(error) = answer {
                assert_eq!(error.code().map(|code| code.code()), Some("TG400"), "{error:?}");
            }
        }
        // Those for JSON take what is JSON, and pass it on.
        let named = NewMessage { payload: b"{}".to_vec(), ..message.clone() }.check().is_ok();
        let ways = [
            "select tidegate.publish($1, $2, '{}', $3::text::jsonb)",
            "select tidegate.publish_many(array[$1::text], array[$2::text], array['{}'::jsonb],
                array[$3::text::jsonb])",
        ];
        for sql in ways {
            let answer = client.query(sql, &[&message.topic, &message.key, &headers]).await;
            assert_eq!(answer.is_ok(), named, "{sql}: {message:?}: {answer:?}");
        }
    }
    assert!(refused > 50 && taken > 50, "{refused} refused, {taken} taken");
}
