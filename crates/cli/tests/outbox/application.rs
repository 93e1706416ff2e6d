//! What applications write: messages in their own transactions, and tables of their own.

use super::{
    FILE_SINK, delivered,
    support::{Place, connect, database},
};
use serde_json::{Value, json};

#[tokio::test]
async fn an_application_publishes_in_its_own_transaction() {
    let (place, url) = (Place::new(), database().await);
    place.write("tidegate.toml", format!("store = '{url}'\n{FILE_SINK}"));
    place.ok(&["migrate"]);
    let client = connect(&url).await;
    let publish = "select tidegate.publish('orders', 'k', '{\"n\": 1}')";
    client
        .batch_execute(&format!("begin; {publish}; rollback; begin; {publish}; commit"))
        .await
        .unwrap();
    let many = "select tidegate.publish_many(array['a','b'], array['k',null], \
                array['1','2']::jsonb[], array['{\"X-A\":\"b\"}',null]::jsonb[])";
    client.batch_execute(many).await.unwrap();
    for (sql, code) in [
        ("select tidegate.publish('', 'k', '1', '{}')", "TG400"),
        ("select tidegate.publish('a', 'k', '1', '[1]')", "TG400"),
        (
            "select tidegate.publish('a', 'k', jsonb_build_object('x', repeat('y', 1048576)))",
            "TG400",
        ),
        (
            "update tidegate.outbox set most_outstanding = 1; select tidegate.publish('a', 'k', '1')",
            "TG429",
        ),
    ] {
        let error = client.batch_execute(sql).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), code, "{sql}");
    }
    assert_eq!(place.json(&["relay", "--drain"])["counts"]["delivered"], 3);
    let seen = delivered(&place);
    let topics: Vec<&str> = seen.iter().map(|line| line["topic"].as_str().unwrap()).collect();
    assert_eq!(topics.iter().filter(|topic| **topic == "orders").count(), 1, "{seen:?}");
    let a = seen.iter().find(|line| line["topic"] == "a").unwrap();
    assert_eq!(a["headers"]["X-A"], "b");
    // Readable with plain SQL.
    let state = "select state from tidegate.messages where topic = 'orders'";
    assert_eq!(client.query_one(state, &[]).await.unwrap().get::<_, &str>(0), "sent");
    client.batch_execute("update tidegate.outbox set most_outstanding = null").await.unwrap();
    for flawed in ["repeat('t', 256), 'k'", "'orders', repeat('k', 1025)", "E'a\\nb', 'k'"] {
        let sql = format!("select tidegate.publish({flawed}, '1')");
        let error = client.batch_execute(&sql).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "TG400", "{sql}");
    }
    assert_eq!(place.json(&["outbox", "status"])["outstanding"], 0);
    // What got in by another way is given up by relays before a sink sees it.
    let long = "insert into tidegate.message_0 (id, topic, key, payload)
        select nextval('tidegate.message_id'), m.topic, m.key, '1'
        from (values (repeat('t', 256), 'k'), ('orders', repeat('k', 1025))) as m (topic, key)";
    client.batch_execute(long).await.unwrap();
    let said = place.tidegate(&["relay", "--drain"]);
    assert!(said.code == 3 && said.stderr.contains("255 is the most"), "{}", said.stderr);
    let reasons = place.ok(&["outbox", "dead"]);
    assert!(reasons.contains("255 is the") && reasons.contains("1024 is the"), "{reasons}");
}

const ENTITY_OUTBOX: &str = "
    create table entity_outbox (
        outbox_id uuid primary key default gen_random_uuid(),
        repository_id uuid not null default '11111111-1111-1111-1111-111111111111',
        entity_id varchar(64) not null,
        operation varchar(10) not null,
        target_store varchar(32) not null default 'qdrant',
        payload jsonb not null,
        created_at timestamptz not null default clock_timestamp(),
        processed_at timestamptz,
        retry_count int not null default 0,
        last_error text,
        collection_name varchar(255) not null default 'people'
    );
    insert into entity_outbox (entity_id, operation, payload)
    select 'e' || n % 3, case when n < 3 then 'INSERT' else 'UPDATE' end, jsonb_build_object('n', n)
    from generate_series(0, 29) as n";

#[tokio::test]
async fn a_table_that_was_there_before_is_looked_at_and_delivered() {
    let (place, url) = (Place::new(), database().await);
    let client = connect(&url).await;
    client.batch_execute(ENTITY_OUTBOX).await.unwrap();
    place.write(
        "tidegate.toml",
        format!("store = '{url}'\n{FILE_SINK}[outbox]\npreset = 'entity-outbox'\n"),
    );
    let said = place.tidegate(&["publish", "orders", "1"]);
    assert!(
        said.code == 1 && said.stderr.contains("nothing is published to it"),
        "{}",
        said.stderr
    );
    let report = place.json(&["relay", "--shadow"]);
    assert_eq!(
        (&report["pending"], &report["topics"][0]["topic"]),
        (&json!(30), &json!("qdrant.people"))
    );
    assert!(place.ok(&["relay", "--shadow"]).contains("create index"));
    let pending = "select count(*) from entity_outbox where processed_at is null";
    let count = async || client.query_one(pending, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(
        (count().await, delivered(&place).len()),
        (30, 0),
        "nothing was delivered or written"
    );

    place.ok(&["migrate"]);
    let said = place.tidegate(&["doctor"]);
    assert!(said.code == 1 && said.stdout.contains("create index"), "{}", said.stdout);
    let said = place.tidegate(&["relay", "--drain"]);
    assert!(
        said.stderr.contains("created_at") && said.stderr.contains("30 delivered"),
        "{}",
        said.stderr
    );
    assert_eq!(count().await, 0);
    let of_key: Vec<Value> = delivered(&place)
        .into_iter()
        .filter(|line| line["key"].as_str().unwrap().ends_with(":e1"))
        .map(|line| line["payload"]["n"].clone())
        .collect();
    assert_eq!(of_key, (0..10).map(|n| json!(n * 3 + 1)).collect::<Vec<_>>());
    assert!(delivered(&place).iter().all(|line| line["headers"]["collection"] == "people"));
    let said = place.tidegate(&["check"]);
    assert!(said.stdout.contains("table public.entity_outbox"), "{}", said.stdout);
    for command in [["check"].as_slice(), &["doctor"], &["outbox", "status"]] {
        let said = place.tidegate(&[command, &["--preset", "brighter"]].concat());
        let missing = format!("{}{}", said.stdout, said.stderr).contains("no table `outbox`");
        assert!(said.code == 1 && missing, "{command:?}: {} {}", said.stdout, said.stderr);
    }
    for command in [["archive", "archived"].as_slice(), &["purge", "--older-than", "1d"]] {
        let said = place.tidegate(&[&["outbox"], command].concat());
        let clear = said.stderr.contains("entity_outbox is its application's");
        assert!(said.code == 1 && clear, "{command:?}: {}", said.stderr);
    }
    let said = place.tidegate(&["relay", "--preset", "brighter", "--drain"]);
    assert!(said.code == 1 && said.stderr.contains("no table `outbox`"), "{}", said.stderr);
}
