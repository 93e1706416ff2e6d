//! Tables are made, checked and upgraded.

use crate::fixture::{Fixture, LEASE, drain, message, recorder};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndex,
    GlobalSecondaryIndexUpdate, KeySchemaElement, KeyType, Projection, ProjectionType,
    ProvisionedThroughput, ScalarAttributeType, TimeToLiveSpecification,
};
use tidegate_core::{Migrate, Outbox, Publish, WorkerId, migrate::Schema, outbox::Share};
use tidegate_drill::dynamodb::Faults;

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

/// A table as Brighter v9 made it, on demand or with so many units for it and each index.
async fn create_v9(fixture: &Fixture, units: Option<i64>) {
    let throughput = units.map(|units| {
        let throughput = ProvisionedThroughput::builder().read_capacity_units(units);
        throughput.write_capacity_units(units).build().unwrap()
    });
    let index = |name, hash, range| {
        let mut index = index(name, hash, range);
        index.provisioned_throughput.clone_from(&throughput);
        index
    };
    let billing = units.map_or(BillingMode::PayPerRequest, |_| BillingMode::Provisioned);
    fixture
        .client()
        .create_table()
        .table_name(fixture.table())
        .billing_mode(billing)
        .attribute_definitions(attribute("MessageId", ScalarAttributeType::S))
        .attribute_definitions(attribute("TopicShard", ScalarAttributeType::S))
        .attribute_definitions(attribute("Topic", ScalarAttributeType::S))
        .attribute_definitions(attribute("OutstandingCreatedTime", ScalarAttributeType::N))
        .attribute_definitions(attribute("DeliveryTime", ScalarAttributeType::N))
        .key_schema(key("MessageId", KeyType::Hash))
        .global_secondary_indexes(index("Outstanding", "TopicShard", "OutstandingCreatedTime"))
        .global_secondary_indexes(index("Delivered", "Topic", "DeliveryTime"))
        .set_provisioned_throughput(throughput.clone())
        .send()
        .await
        .unwrap();
}

const ADDED_TO_V9: [&str; 4] = [
    "index of outstanding messages",
    "index of delivered messages by shard",
    "index of delivered messages",
    "side table",
];

#[tokio::test]
async fn a_table_of_v9_is_upgraded() {
    // A table's own mode counts, whatever the address says of tables that are created.
    for (units, settings) in
        [(None, ""), (None, "&billing=5/5"), (Some(7), ""), (Some(7), "&billing=5/5")]
    {
        let fixture = Fixture::without_table(2);
        create_v9(&fixture, units).await;
        let store = fixture.open(settings);
        assert_eq!(store.schema().await.unwrap(), Schema::Outdated { found: 9, needed: 10 });
        assert_eq!(store.migrate().await.unwrap(), ADDED_TO_V9);
        assert_eq!(store.schema().await.unwrap(), Schema::Current);
        assert_eq!(fixture.proxy.counters().of("UpdateTable").requests, 3, "one index at a time");
        assert!(store.script_of_missing().await.unwrap().contains("Nothing is missing"));
    }
}

/// DynamoDB describes a table as it was before for a while: a new one is unknown, a new index is not there.
#[tokio::test]
async fn descriptions_that_lag_behind_change_nothing() {
    let faults = || Faults { stale_descriptions: 3, ..Faults::default() };
    let fixture = Fixture::without_table(4);
    fixture.faults(faults());
    let store = fixture.open("");
    assert_eq!(store.migrate().await.unwrap(), ["table of messages", "side table"]);
    assert_eq!(store.schema().await.unwrap(), Schema::Current);

    let fixture = Fixture::without_table(5);
    create_v9(&fixture, None).await;
    fixture.faults(faults());
    let store = fixture.open("");
    assert_eq!(store.migrate().await.unwrap(), ADDED_TO_V9);
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    assert_eq!(fixture.proxy.counters().of("UpdateTable").requests, 3, "none is added twice");
}

#[tokio::test]
async fn two_that_migrate_at_once_do_not_disturb_each_other() {
    let fixture = Fixture::without_table(6);
    create_v9(&fixture, None).await;
    fixture.faults(Faults { stale_descriptions: 2, ..Faults::default() });
    let (one, other) = (fixture.open(""), fixture.open(""));
    let (one, other) = tokio::join!(one.migrate(), other.migrate());
    let applied = [one.unwrap(), other.unwrap()].concat();
    assert!(ADDED_TO_V9.iter().all(|it| applied.contains(it)), "{applied:?}");
    assert_eq!(fixture.open("").schema().await.unwrap(), Schema::Current);
}

#[tokio::test]
async fn an_index_without_all_attributes_is_refused_and_replaced() {
    let fixture = Fixture::without_table(7);
    create_v9(&fixture, None).await;
    let keys = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
    let mut thin = index("OutstandingAllTopics", "OutstandingCreatedTime", "MessageId");
    thin.projection = Some(keys);
    let create = CreateGlobalSecondaryIndexAction::builder()
        .index_name(&thin.index_name)
        .set_key_schema(Some(thin.key_schema))
        .set_projection(thin.projection)
        .build()
        .unwrap();
    let update = fixture.client().update_table().table_name(fixture.table());
    let update = update
        .attribute_definitions(attribute("MessageId", ScalarAttributeType::S))
        .attribute_definitions(attribute("OutstandingCreatedTime", ScalarAttributeType::N))
        .global_secondary_index_updates(
            GlobalSecondaryIndexUpdate::builder().create(create).build(),
        );
    update.send().await.unwrap();
    let store = fixture.open("");
    for error in [
        store.migrate().await.unwrap_err(),
        store.schema().await.unwrap_err(),
        store.found_tables().await.unwrap_err(),
        store.script_of_missing().await.unwrap_err(),
        store.share_lanes(share()).await.unwrap_err(),
    ] {
        for word in
            ["OutstandingAllTopics has not all attributes", "outstanding_all_topics_index=NAME"]
        {
            assert!(error.to_string().contains(word), "{error}");
        }
    }
    let other = fixture.open("&outstanding_all_topics_index=Whole");
    assert_eq!(other.migrate().await.unwrap(), ADDED_TO_V9);
    assert_eq!(other.found_tables().await.unwrap().missing, [""; 0]);
    other.publish(vec![message("t", None, 1)]).await.unwrap();
    let sink = recorder();
    drain(other, &sink).await;
    assert_eq!(sink.got().len(), 1);
}

fn share() -> Share {
    let (relay, lease) = (WorkerId("a".to_owned()), LEASE);
    Share { relay, epoch: Default::default(), held: Vec::new(), routes: Vec::new(), lease }
}

#[tokio::test]
async fn the_expiry_of_others_is_left_alone_and_told() {
    let fixture = Fixture::new(8).await;
    let store = fixture.open("&ttl=7d");
    let advice = store.advice().await.unwrap();
    assert!(advice[0].problem.contains("its expiry is off"), "{advice:?}");
    let other = TimeToLiveSpecification::builder().enabled(true).attribute_name("Gone");
    let update = fixture.client().update_time_to_live().table_name(fixture.table());
    update.time_to_live_specification(other.build().unwrap()).send().await.unwrap();
    let error = store.migrate().await.unwrap_err().to_string();
    assert!(error.contains("expire by Gone") && error.contains("one attribute"), "{error}");
    let advice = store.advice().await.unwrap();
    assert!(advice[0].problem.contains("expire by Gone"), "{advice:?}");
    assert!(fixture.open("").advice().await.unwrap().is_empty(), "nobody asked for an expiry");
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
