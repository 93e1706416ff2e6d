//! Tables are described as they were for a while, and the throughput of an index must fit the table's.

use crate::client::start;
use serde_json::{Value, json};
use tidegate_drill::dynamodb::Faults;

fn add_index(table: &str, name: &str, units: Option<u32>) -> Value {
    let mut index = json!({
        "IndexName": name,
        "KeySchema": [{ "AttributeName": "by", "KeyType": "HASH" }],
        "Projection": { "ProjectionType": "ALL" },
    });
    if let Some(units) = units {
        index["ProvisionedThroughput"] =
            json!({ "ReadCapacityUnits": units, "WriteCapacityUnits": units });
    }
    json!({
        "TableName": table,
        "AttributeDefinitions": [{ "AttributeName": "by", "AttributeType": "S" }],
        "GlobalSecondaryIndexUpdates": [{ "Create": index }],
    })
}

#[tokio::test]
async fn descriptions_lag_behind_changes() {
    let it = start(1, &[], Faults { stale_descriptions: 2, ..Faults::default() }).await;
    it.client.ask("UpdateTable", &add_index(&it.table, "added", None)).await;
    let mut shown = Vec::new();
    for _ in 0..4 {
        let answer = it.client.ask("DescribeTable", &json!({ "TableName": it.table })).await;
        shown.push(answer["Table"]["GlobalSecondaryIndexes"].to_string().contains("added"));
    }
    assert_eq!(shown, [false, false, true, true]);
    let new = format!("{}_new", it.table);
    let key = json!({ "AttributeName": "id", "KeyType": "HASH" });
    let table = json!({
        "TableName": new,
        "AttributeDefinitions": [{ "AttributeName": "id", "AttributeType": "S" }],
        "KeySchema": [key],
        "BillingMode": "PAY_PER_REQUEST",
    });
    it.client.ask("CreateTable", &table).await;
    for _ in 0..2 {
        let refused = it.client.send("DescribeTable", &json!({ "TableName": new })).await.unwrap();
        assert_eq!(refused.unwrap_err().kind, "ResourceNotFoundException");
    }
    it.client.ask("DescribeTable", &json!({ "TableName": new })).await;
}

#[tokio::test]
async fn an_index_must_fit_the_mode_of_its_table() {
    let it = start(2, &[], Faults::default()).await;
    let update = add_index(&it.table, "added", Some(5));
    let refused = it.client.send("UpdateTable", &update).await.unwrap().unwrap_err();
    assert_eq!(refused.kind, "ValidationException");
    it.client.ask("UpdateTable", &add_index(&it.table, "added", None)).await;
}
