//! Tables are made, checked and upgraded.

use crate::fixture::Fixture;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType,
};
use tidegate_core::{Migrate, migrate::Schema};

fn attribute(name: &str, kind: ScalarAttributeType) -> AttributeDefinition {
    AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build().unwrap()
}

fn key(name: &str, kind: KeyType) -> KeySchemaElement {
    KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap()
}

fn index(name: &str, hash: &str, range: &str) -> GlobalSecondaryIndex {
    GlobalSecondaryIndex::builder()
        .index_name(name)
        .key_schema(key(hash, KeyType::Hash))
        .key_schema(key(range, KeyType::Range))
        .projection(Projection::builder().projection_type(ProjectionType::All).build())
        .build()
        .unwrap()
}

#[tokio::test]
async fn tables_are_made_once() {
    let fixture = Fixture::without_table(1);
    let store = fixture.open("&ttl=7d");
    assert_eq!(store.schema().await.unwrap(), Schema::Missing);
    assert_eq!(
        store.migrate().await.unwrap(),
        ["table of messages", "side table", "expiry of delivered messages"]
    );
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    assert!(store.migrate().await.unwrap().is_empty());
}

#[tokio::test]
async fn provisioned_tables_are_made() {
    let fixture = Fixture::without_table(1);
    let store = fixture.open("&billing=5/5");
    store.migrate().await.unwrap();
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
}

#[tokio::test]
async fn a_table_of_v9_is_upgraded() {
    let fixture = Fixture::without_table(2);
    fixture
        .client()
        .create_table()
        .table_name(fixture.table())
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute("MessageId", ScalarAttributeType::S))
        .attribute_definitions(attribute("TopicShard", ScalarAttributeType::S))
        .attribute_definitions(attribute("Topic", ScalarAttributeType::S))
        .attribute_definitions(attribute("OutstandingCreatedTime", ScalarAttributeType::N))
        .attribute_definitions(attribute("DeliveryTime", ScalarAttributeType::N))
        .key_schema(key("MessageId", KeyType::Hash))
        .global_secondary_indexes(index("Outstanding", "TopicShard", "OutstandingCreatedTime"))
        .global_secondary_indexes(index("Delivered", "Topic", "DeliveryTime"))
        .send()
        .await
        .unwrap();
    let store = fixture.open("");
    assert_eq!(store.schema().await.unwrap(), Schema::Outdated { found: 9, needed: 10 });
    let applied = store.migrate().await.unwrap();
    assert_eq!(
        applied,
        [
            "index of outstanding messages",
            "index of delivered messages by shard",
            "index of delivered messages",
            "side table"
        ]
    );
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    assert_eq!(fixture.proxy.counters().of("UpdateTable").requests, 3, "one index at a time");
}

#[tokio::test]
async fn a_table_that_is_no_outbox_is_refused() {
    let fixture = Fixture::without_table(3);
    fixture
        .client()
        .create_table()
        .table_name(fixture.table())
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute("id", ScalarAttributeType::S))
        .key_schema(key("id", KeyType::Hash))
        .send()
        .await
        .unwrap();
    let store = fixture.open("");
    for error in [store.schema().await.unwrap_err(), store.migrate().await.unwrap_err()] {
        assert!(error.to_string().contains("it is not an outbox: its key is id"), "{error}");
    }
    assert_eq!(fixture.proxy.counters().of("CreateTable").requests, 1, "nothing is half made");
}
