//! Publishing: in whose transaction, in which ways, and what is refused.

use super::*;

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
                published.extend(ids.iter().map(|id| id.0));
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
    refused("null, 'k', ''", "23502", "topic").await;
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
    // What costs a single message too much to look at costs many little.
    let flawed = [
        ("null", "'k'", "at least one character"),
        ("''", "'k'", "at least one character"),
        ("'a*'", "'k'", "at least one character"),
        ("E'a\\n'", "'k'", "at least one character"),
        ("repeat('t', 256)", "'k'", "255 is the most"),
        ("'t'", "repeat('k', 1025)", "1024 is the most"),
    ];
    for (topic, key, reason) in flawed {
        refused_many(
            &format!("array['t', {topic}], array['k', {key}], array['', '']::bytea[]"),
            reason,
        )
        .await;
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

/// Publishing did not look at them. However long they are, claims come past them: what is to become of them is
/// up to the relay.
#[tokio::test]
async fn topics_and_keys_without_measure_are_read() {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    database
        .execute(
            "select tidegate.publish_bytes(t, k, '') from (values ('', 'a'), ('a*', 'b'), (E'a\\n', 'c'),
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
