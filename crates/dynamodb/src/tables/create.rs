//! How tables and indexes are made.

use super::{
    NAME, SCOPE,
    layout::{Layout, Units, Wanted, wanted},
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
        let (indexes, units) = (wanted(&address.indexes), units(address.billing));
        Ok(Self {
            attributes: attributes(&[MESSAGE_ID, TOPIC_SHARD, OUTSTANDING, DELIVERY_TIME])?,
            keys: vec![key(MESSAGE_ID, KeyType::Hash)?],
            indexes: indexes.iter().map(|it| index(it, units)).collect::<Result<_, _>>()?,
            billing: mode(address.billing),
            throughput: throughput(units)?,
        })
    }

    pub fn of_side_table(address: &Address) -> Result<Self, BuildError> {
        let text = ScalarAttributeType::S;
        Ok(Self {
            attributes: vec![attribute(SCOPE, text.clone())?, attribute(NAME, text)?],
            keys: vec![key(SCOPE, KeyType::Hash)?, key(NAME, KeyType::Range)?],
            indexes: Vec::new(),
            billing: mode(address.billing),
            throughput: throughput(units(address.billing))?,
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

pub(super) fn throughput(
    units: Option<Units>,
) -> Result<Option<ProvisionedThroughput>, BuildError> {
    let build = |units: Units| {
        ProvisionedThroughput::builder()
            .read_capacity_units(units.read)
            .write_capacity_units(units.write)
            .build()
    };
    units.map(build).transpose()
}

/// What a table gets that is created.
pub(super) fn units(billing: Billing) -> Option<Units> {
    match billing {
        Billing::OnDemand => None,
        Billing::Provisioned { read, write } => {
            Some(Units { read: read.into(), write: write.into() })
        }
    }
}

/// What an index gets that is added to a table: DynamoDB refuses units if the table is on demand, and asks for them if
/// it is not. Then it gets those of the address, or as many as the table has.
pub(super) fn units_of_index(address: &Address, table: &Layout) -> Option<Units> {
    table.provisioned().map(|own| units(address.billing).unwrap_or(own))
}

fn index(wanted: &Wanted, units: Option<Units>) -> Result<GlobalSecondaryIndex, BuildError> {
    GlobalSecondaryIndex::builder()
        .index_name(&wanted.name)
        .set_key_schema(Some(keys_of(wanted)?))
        .projection(whole())
        .set_provisioned_throughput(throughput(units)?)
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
