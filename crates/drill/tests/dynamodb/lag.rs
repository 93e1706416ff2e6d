use crate::client::{Pair, item, key, start};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tidegate_drill::dynamodb::Faults;

/// Longer than any test takes: what an index shows changes only when it is told to catch up.
const LONG: Faults = lagging(Duration::from_secs(1 << 30));

const fn lagging(index_lag: Duration) -> Faults {
    Faults {
        unprocessed: 0.0,
        throttled: std::collections::BTreeMap::new(),
        slow: std::collections::BTreeMap::new(),
        refused: std::collections::BTreeMap::new(),
        index_lag,
        latency: Duration::ZERO,
        cut_before: 0.0,
        cut_after: 0.0,
    }
}

fn three() -> Vec<Value> {
    vec![item("a", 1, "first"), item("b", 2, "second"), item("c", 3, "third")]
}

/// What both indexes show: through the proxy, and in truth.
async fn shown(it: &Pair) -> [Vec<String>; 2] {
    [it.index(&it.client).await, it.scan(&it.client).await]
}

async fn truth(it: &Pair) -> [Vec<String>; 2] {
    [it.index(&it.direct).await, it.scan(&it.direct).await]
}

#[tokio::test]
async fn indexes_show_new_items_late_and_changed_or_removed_ones_as_they_were() {
    let it = start(1, &three(), LONG).await;
    it.put(item("d", 4, "new")).await;
    it.put(item("a", 1, "changed")).await;
    it.leave_group("b").await;
    it.ask("DeleteItem", json!({ "Key": key("c") })).await;
    assert_eq!(it.index(&it.client).await, ["a first", "b second", "c third"]);
    // The table itself does not lag.
    let read = it.ask("GetItem", json!({ "Key": key("d"), "ConsistentRead": true })).await;
    assert_eq!(read["Item"], item("d", 4, "new"));
    assert_eq!(it.ask("Scan", json!({ "Select": "COUNT" })).await["Count"], 3);
    it.proxy.catch_up().await.unwrap();
    assert_eq!(it.index(&it.client).await, ["a changed", "d new"]);
}

#[tokio::test]
async fn a_refused_write_changes_no_index() {
    let it = start(1, &three(), LONG).await;
    let body = it.on(
        json!({ "Item": item("a", 1, "again"), "ConditionExpression": "attribute_not_exists(id)" }),
    );
    it.client.send("PutItem", &body).await.unwrap().unwrap_err();
    it.proxy.catch_up().await.unwrap();
    assert_eq!(it.index(&it.client).await, ["a first", "b second", "c third"]);
}

#[tokio::test]
async fn a_write_whose_answer_was_cut_is_shown_in_the_end() {
    let it = start(1, &three(), Faults { cut_after: 1.0, ..LONG }).await;
    let body = it.on(json!({ "Item": item("d", 4, "new") }));
    assert_eq!(it.client.send("PutItem", &body).await, None);
    it.proxy.set_faults(LONG);
    assert_eq!(it.index(&it.client).await.len(), 3);
    it.proxy.catch_up().await.unwrap();
    assert_eq!(it.index(&it.client).await.len(), 4);
}

#[tokio::test]
async fn without_lag_and_with_a_new_one_indexes_are_as_they_should_be() {
    let it = start(1, &three(), LONG).await;
    it.leave_group("a").await;
    assert_eq!(it.index(&it.client).await.len(), 3);
    it.proxy.set_faults(Faults::default());
    assert_eq!(it.index(&it.client).await, ["b second", "c third"]);
    it.leave_group("b").await;
    it.proxy.set_faults(LONG);
    assert_eq!(it.index(&it.client).await, ["c third"]);
    it.leave_group("c").await;
    assert_eq!(it.index(&it.client).await, ["c third"]);
}

#[tokio::test]
async fn nobody_sees_what_plays_the_lag() {
    let it = start(1, &three(), LONG).await;
    let query = json!({
        "IndexName": "numbers",
        "KeyConditionExpression": "#n = :n",
        "ExpressionAttributeNames": { "#n": "number" },
        "ExpressionAttributeValues": { ":n": { "N": "1" } },
        "ReturnConsumedCapacity": "INDEXES",
    });
    let answer = it.ask("Query", query).await;
    assert_eq!(answer["ConsumedCapacity"]["TableName"], it.table.as_str());
    // Keys only, as the index itself.
    assert_eq!(answer["Items"], json!([{ "id": { "S": "a" }, "number": { "N": "1" } }]));
    assert_eq!(it.client.tables(&it.table).await, 1);
    assert_eq!(it.direct.tables(&it.table).await, 3);
    let Pair { proxy, direct, table, .. } = it;
    proxy.stop().await;
    assert_eq!(direct.tables(&table).await, 1);
}

#[tokio::test]
async fn a_table_that_was_removed_and_made_again_is_empty() {
    let it = start(1, &three(), LONG).await;
    it.leave_group("a").await;
    let described = it.ask("DescribeTable", json!({})).await;
    it.ask("DeleteTable", json!({})).await;
    let mut schema = json!({ "BillingMode": "PAY_PER_REQUEST" });
    for field in ["KeySchema", "AttributeDefinitions"] {
        schema[field] = described["Table"][field].clone();
    }
    let indexes = described["Table"]["GlobalSecondaryIndexes"].as_array().unwrap();
    let index = |it: &Value| json!({ "IndexName": it["IndexName"], "KeySchema": it["KeySchema"], "Projection": it["Projection"] });
    schema["GlobalSecondaryIndexes"] = indexes.iter().map(index).collect();
    it.ask("CreateTable", schema).await;
    assert_eq!(it.index(&it.client).await, Vec::<String>::new());
}

/// A random write of a few items, in every way that there is.
async fn write(it: &Pair, luck: &mut ChaCha8Rng) {
    let id = |luck: &mut ChaCha8Rng| ["a", "b", "c", "d", "e", "f"][luck.random_range(0..6)];
    let one = id(luck);
    let mut other = id(luck);
    while other == one {
        other = id(luck);
    }
    let text = format!("v{}", luck.random_range(0..1000));
    let new = item(one, luck.random_range(0..6), &text);
    let update = json!({
        "Key": key(other),
        "UpdateExpression": "SET #t = :t, #n = :n REMOVE #g",
        "ExpressionAttributeNames": { "#g": "group", "#t": "text", "#n": "number" },
        "ExpressionAttributeValues": { ":t": { "S": text }, ":n": { "N": luck.random_range(0..6).to_string() } },
    });
    match luck.random_range(0..5) {
        0 => drop(it.put(new).await),
        1 => drop(it.ask("UpdateItem", update).await),
        2 => drop(it.ask("DeleteItem", json!({ "Key": key(other) })).await),
        3 => {
            let writes = json!([{ "PutRequest": { "Item": new } }, { "DeleteRequest": { "Key": key(other) } }]);
            let body = json!({ "RequestItems": { it.table.as_str(): writes } });
            it.client.ask("BatchWriteItem", &body).await;
        }
        _ => {
            let put = json!({ "Put": it.on(json!({ "Item": new })) });
            let body = json!({ "TransactItems": [put, { "Update": it.on(update) }] });
            it.client.ask("TransactWriteItems", &body).await;
        }
    }
}

#[tokio::test]
async fn whatever_is_written_indexes_stay_behind_and_catch_up() {
    for seed in 0..6 {
        let it = start(seed, &three(), LONG).await;
        let luck = &mut ChaCha8Rng::seed_from_u64(seed);
        for round in 0..4 {
            let before = truth(&it).await;
            assert_eq!(shown(&it).await, before, "seed {seed}, round {round}");
            for _ in 0..8 {
                write(&it, luck).await;
                assert_eq!(shown(&it).await, before, "seed {seed}, round {round}");
            }
            it.proxy.catch_up().await.unwrap();
        }
    }
}

#[tokio::test]
async fn concurrent_writers_leave_the_indexes_as_the_table_is() {
    let it = start(9, &three(), lagging(Duration::from_millis(20))).await;
    let writers = (0..6).map(|seed| {
        let it = &it;
        async move {
            let luck = &mut ChaCha8Rng::seed_from_u64(seed);
            for _ in 0..20 {
                write(it, luck).await;
            }
        }
    });
    futures_util::future::join_all(writers).await;
    let (truth, deadline) = (truth(&it).await, Instant::now() + Duration::from_secs(10));
    while shown(&it).await != truth {
        assert!(Instant::now() < deadline, "{:?} is not {truth:?}", shown(&it).await);
    }
}
