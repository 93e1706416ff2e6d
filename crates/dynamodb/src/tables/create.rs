//! How tables are made, and the same for people who use a tool of their own.

use super::{
    NAME, SCOPE,
    layout::{Wanted, wanted},
};
use crate::{
    address::{Address, Billing},
    item::name::{DELIVERY_TIME, MESSAGE_ID, OUTSTANDING, TOPIC_SHARD},
};
use aws_sdk_dynamodb::{
    error::BuildError,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType,
        Projection, ProjectionType, ProvisionedThroughput, ScalarAttributeType,
    },
};
use serde_json::{Value, json};

/// Everything that one table is made of.
pub(super) struct Definition {
    pub attributes: Vec<AttributeDefinition>,
    pub keys: Vec<KeySchemaElement>,
    pub indexes: Vec<GlobalSecondaryIndex>,
    pub billing: BillingMode,
    pub throughput: Option<ProvisionedThroughput>,
}

impl Definition {
    pub fn of_messages(address: &Address) -> Result<Self, BuildError> {
        let indexes = wanted(&address.indexes);
        Ok(Self {
            attributes: attributes(&[MESSAGE_ID, TOPIC_SHARD, OUTSTANDING, DELIVERY_TIME])?,
            keys: vec![key(MESSAGE_ID, KeyType::Hash)?],
            indexes: indexes
                .iter()
                .map(|it| index(it, address.billing))
                .collect::<Result<_, _>>()?,
            billing: mode(address.billing),
            throughput: throughput(address.billing)?,
        })
    }

    pub fn of_side_table(address: &Address) -> Result<Self, BuildError> {
        let text = ScalarAttributeType::S;
        Ok(Self {
            attributes: vec![attribute(SCOPE, text.clone())?, attribute(NAME, text)?],
            keys: vec![key(SCOPE, KeyType::Hash)?, key(NAME, KeyType::Range)?],
            indexes: Vec::new(),
            billing: mode(address.billing),
            throughput: throughput(address.billing)?,
        })
    }
}

/// Attributes by which messages are found. DynamoDB refuses those that no key has.
pub(super) fn attributes(names: &[&str]) -> Result<Vec<AttributeDefinition>, BuildError> {
    let kind = |name: &str| match name {
        OUTSTANDING | DELIVERY_TIME => ScalarAttributeType::N,
        _ => ScalarAttributeType::S,
    };
    names.iter().map(|name| attribute(name, kind(name))).collect()
}

pub(super) fn keys_of(wanted: &Wanted) -> Result<Vec<KeySchemaElement>, BuildError> {
    Ok(vec![key(wanted.hash, KeyType::Hash)?, key(wanted.range, KeyType::Range)?])
}

pub(super) fn whole() -> Projection {
    Projection::builder().projection_type(ProjectionType::All).build()
}

pub(super) fn throughput(billing: Billing) -> Result<Option<ProvisionedThroughput>, BuildError> {
    let Billing::Provisioned { read, write } = billing else { return Ok(None) };
    ProvisionedThroughput::builder()
        .read_capacity_units(read.into())
        .write_capacity_units(write.into())
        .build()
        .map(Some)
}

fn index(wanted: &Wanted, billing: Billing) -> Result<GlobalSecondaryIndex, BuildError> {
    GlobalSecondaryIndex::builder()
        .index_name(&wanted.name)
        .set_key_schema(Some(keys_of(wanted)?))
        .projection(whole())
        .set_provisioned_throughput(throughput(billing)?)
        .build()
}

fn mode(billing: Billing) -> BillingMode {
    match billing {
        Billing::OnDemand => BillingMode::PayPerRequest,
        Billing::Provisioned { .. } => BillingMode::Provisioned,
    }
}

fn attribute(name: &str, kind: ScalarAttributeType) -> Result<AttributeDefinition, BuildError> {
    AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build()
}

fn key(name: &str, kind: KeyType) -> Result<KeySchemaElement, BuildError> {
    KeySchemaElement::builder().attribute_name(name).key_type(kind).build()
}

/// The commands that make the tables of an address, for people who apply them with a tool of their own.
pub fn script(address: &Address) -> String {
    let throughput = |table: &mut Value| match address.billing {
        Billing::OnDemand => table["BillingMode"] = json!("PAY_PER_REQUEST"),
        Billing::Provisioned { read, write } => {
            let units = json!({"ReadCapacityUnits": read, "WriteCapacityUnits": write});
            table["BillingMode"] = json!("PROVISIONED");
            table["ProvisionedThroughput"] = units.clone();
            for index in table["GlobalSecondaryIndexes"].as_array_mut().into_iter().flatten() {
                index["ProvisionedThroughput"] = units.clone();
            }
        }
    };
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let attribute = |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
    let index = |wanted: &Wanted| {
        json!({
            "IndexName": wanted.name,
            "KeySchema": [key(wanted.hash, "HASH"), key(wanted.range, "RANGE")],
            "Projection": {"ProjectionType": "ALL"},
        })
    };
    let mut messages = json!({
        "TableName": address.table,
        "AttributeDefinitions": [
            attribute(MESSAGE_ID, "S"),
            attribute(TOPIC_SHARD, "S"),
            attribute(OUTSTANDING, "N"),
            attribute(DELIVERY_TIME, "N"),
        ],
        "KeySchema": [key(MESSAGE_ID, "HASH")],
        "GlobalSecondaryIndexes": wanted(&address.indexes).iter().map(index).collect::<Vec<_>>(),
    });
    let mut side = json!({
        "TableName": address.side_table,
        "AttributeDefinitions": [attribute(SCOPE, "S"), attribute(NAME, "S")],
        "KeySchema": [key(SCOPE, "HASH"), key(NAME, "RANGE")],
    });
    throughput(&mut messages);
    throughput(&mut side);
    let command =
        |table: &Value| format!("aws dynamodb create-table --cli-input-json '{table:#}'\n");
    format!(
        "# The messages.\n{}\n# Leases, and what was set aside.\n{}",
        command(&messages),
        command(&side)
    )
}
