use crate::client::{item, key, start};
use serde_json::{Value, json};
use tidegate_drill::dynamodb::Faults;

/// A kilobyte and a bit, so that it costs two units.
fn long() -> String {
    "x".repeat(1100)
}

fn update(condition: &str) -> Value {
    json!({
        "Key": key("a"),
        "UpdateExpression": "SET seen = :now",
        "ConditionExpression": condition,
        "ExpressionAttributeValues": { ":now": { "S": "now" } },
    })
}

#[tokio::test]
async fn requests_and_units_are_counted_by_operation() {
    let it = start(1, &[], Faults::default()).await;
    // Two for the table, two for the index with all, one for the index with keys.
    it.put(item("a", 1, &long())).await;
    it.ask("GetItem", json!({ "Key": key("a"), "ConsistentRead": true })).await;
    it.ask("GetItem", json!({ "Key": key("a") })).await;
    it.index(&it.client).await;
    let seen = it.proxy.counters();
    let put = seen.of("PutItem");
    assert_eq!((put.requests, put.write_units, put.read_units), (1, 5.0, 0.0));
    let get = seen.of("GetItem");
    assert_eq!((get.requests, get.read_units, get.write_units), (2, 1.5, 0.0));
    let query = seen.of("Query");
    assert_eq!((query.requests, query.read_units), (1, 0.5));
    assert_eq!((seen.total().requests, seen.total().read_units), (4, 2.0));
    it.proxy.reset_counters();
    assert_eq!(it.proxy.counters(), Default::default());
}

#[tokio::test]
async fn batches_and_transactions_cost_what_dynamodb_takes() {
    let it = start(1, &[], Faults::default()).await;
    let plain = |id: &str| json!({ "id": { "S": id } });
    let puts: Vec<Value> =
        ["a", "b"].iter().map(|id| json!({ "PutRequest": { "Item": plain(id) } })).collect();
    let batch = json!({ "RequestItems": { it.table.as_str(): puts } });
    it.client.ask("BatchWriteItem", &batch).await;
    let put = json!({ "Put": { "TableName": it.table, "Item": plain("c") } });
    it.client.ask("TransactWriteItems", &json!({ "TransactItems": [put] })).await;
    let keys = json!({ it.table.as_str(): { "Keys": [key("a"), key("c"), key("none")] } });
    it.client.ask("BatchGetItem", &json!({ "RequestItems": keys })).await;
    let seen = it.proxy.counters();
    assert_eq!(seen.of("BatchWriteItem").write_units, 2.0);
    assert_eq!(seen.of("TransactWriteItems").write_units, 2.0);
    assert_eq!(seen.of("BatchGetItem").read_units, 1.5);
}

#[tokio::test]
async fn a_write_whose_condition_does_not_hold_costs_the_item_that_is_there() {
    let it = start(1, &[item("a", 1, &long())], Faults::default()).await;
    let body = it.on(update("attribute_not_exists(id)"));
    let refused = it.client.send("UpdateItem", &body).await.unwrap().unwrap_err();
    assert_eq!(refused.kind, "ConditionalCheckFailedException");
    assert_eq!(refused.body.get("Item"), None);
    let count = it.proxy.counters().of("UpdateItem");
    assert_eq!((count.requests, count.refused, count.write_units), (1, 1, 2.0));
}

#[tokio::test]
async fn the_old_item_comes_back_to_who_asked_for_it() {
    let it = start(1, &[item("a", 1, "old")], Faults::default()).await;
    let mut body = it.on(update("attribute_not_exists(id)"));
    body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD".into();
    let refused = it.client.send("UpdateItem", &body).await.unwrap().unwrap_err();
    assert_eq!(refused.body["Item"], item("a", 1, "old"));
}

#[tokio::test]
async fn clients_are_told_the_capacity_that_they_ask_for() {
    let it = start(1, &[], Faults::default()).await;
    let mut told = Vec::new();
    for asked in [None, Some("NONE"), Some("TOTAL"), Some("INDEXES")] {
        let mut body = json!({ "Item": item("a", 1, "x") });
        if let Some(asked) = asked {
            body["ReturnConsumedCapacity"] = asked.into();
        }
        told.push(it.ask("PutItem", body).await["ConsumedCapacity"].clone());
    }
    let units = |value: &Value| value["CapacityUnits"].as_f64();
    assert_eq!(told[..2], [Value::Null, Value::Null]);
    assert_eq!((units(&told[2]), told[2].get("Table")), (Some(1.0), None));
    assert_eq!((units(&told[3]), units(&told[3]["Table"])), (Some(1.0), Some(1.0)));
}
