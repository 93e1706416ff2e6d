//! Makes the tables, or brings one that is there to what is needed.

use super::{
    create::{Definition, attributes, keys_of, throughput, units_of_index, whole},
    layout::{Layout, Wanted},
};
use crate::{
    DynamoDb,
    client::Client,
    error::{Failure, refused},
};
use async_trait::async_trait;
use aws_sdk_dynamodb::{
    error::BuildError,
    types::{CreateGlobalSecondaryIndexAction, GlobalSecondaryIndexUpdate},
};
use tidegate_core::{Class, Kind, Migrate, StoreError, migrate::Schema};

const OPERATION: &str = "migrate";

/// How often an index may be refused because others change the table, before that is an error.
const REFUSALS: u32 = 5;

/// The newest layout of Brighter's table that this binary knows, and the one before it.
const V10: i64 = 10;
const V9: i64 = 9;

#[async_trait]
impl Migrate for DynamoDb {
    async fn migrate(&self) -> Result<Vec<&'static str>, StoreError> {
        let client = &self.client;
        let mut applied = Vec::new();
        if client.layout(&client.address.table).await?.is_none() {
            client.create(&client.address.table, Definition::of_messages(&client.address)).await?;
            applied.push("table of messages");
        }
        client.add_indexes(&mut applied).await?;
        if client.layout(&client.address.side_table).await?.is_none() {
            client
                .create(&client.address.side_table, Definition::of_side_table(&client.address))
                .await?;
            applied.push("side table");
        }
        client.ready(&client.address.side_table, &[]).await?;
        if client.address.ttl.is_some() && client.turn_on_expiry().await? {
            applied.push("expiry of delivered messages");
        }
        Ok(applied)
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        let client = &self.client;
        let Some(layout) = client.layout(&client.address.table).await? else {
            return Ok(Schema::Missing);
        };
        client.check(&layout)?;
        if layout.lacks(&client.address.indexes).is_some() || !layout.being_made().is_empty() {
            return Ok(Schema::Outdated { found: V9, needed: V10 });
        }
        match client.layout(&client.address.side_table).await? {
            Some(_) => Ok(Schema::Current),
            None => Ok(Schema::Missing),
        }
    }
}

impl Client {
    /// What a table is like; `None` if there is none.
    pub(crate) async fn layout(&self, table: &str) -> Result<Option<Layout>, StoreError> {
        let request = self.sdk.describe_table().table_name(table);
        match self.call("look at the table", || request.clone().send()).await {
            Ok(answer) => Ok(answer.table().map(Layout::of)),
            Err(Failure::Missing(_)) => Ok(None),
            Err(failure) => Err(failure.into_error("look at the table")),
        }
    }

    /// Refuses a table that no relay can use as it is.
    pub(crate) fn check(&self, layout: &Layout) -> Result<(), StoreError> {
        layout.refusal(&self.address.indexes).map_or(Ok(()), |problem| {
            let problem = format!("{}: {problem}", self.address.place());
            Err(StoreError::new(Kind::BadAddress, Class::Permanent, "open the store", problem))
        })
    }

    async fn create(
        &self,
        table: &str,
        definition: Result<Definition, BuildError>,
    ) -> Result<(), StoreError> {
        let definition = definition.map_err(unbuilt)?;
        let indexes = Some(definition.indexes).filter(|indexes| !indexes.is_empty());
        let request = self
            .sdk
            .create_table()
            .table_name(table)
            .set_attribute_definitions(Some(definition.attributes))
            .set_key_schema(Some(definition.keys))
            .set_global_secondary_indexes(indexes)
            .billing_mode(definition.billing)
            .set_provisioned_throughput(definition.throughput);
        match self.call(OPERATION, || request.clone().send()).await {
            Ok(_) => Ok(()),
            // Somebody else makes it at the same time.
            Err(failure) => others_do(failure).map(|_| ()),
        }
    }

    /// Adds the indexes that are missing, one at a time, as DynamoDB requires.
    async fn add_indexes(&self, applied: &mut Vec<&'static str>) -> Result<(), StoreError> {
        let (mut made, mut refusals) = (Vec::new(), 0);
        loop {
            let layout = self.ready(&self.address.table, &made).await?;
            let Some(wanted) = layout.lacks(&self.address.indexes) else { return Ok(()) };
            match self.add_index(&layout, &wanted).await? {
                None => {
                    applied.push(wanted.applied);
                    refusals = 0;
                }
                // Perhaps it is there, and the description is older; perhaps somebody adds another one.
                Some(_) if refusals < REFUSALS => refusals += 1,
                Some(refusal) => return Err(refusal),
            }
            if !made.contains(&wanted.name) {
                made.push(wanted.name);
            }
        }
    }

    /// Adds an index. Returns why not if others change the table at the same time.
    async fn add_index(
        &self,
        layout: &Layout,
        wanted: &Wanted,
    ) -> Result<Option<StoreError>, StoreError> {
        let units = units_of_index(&self.address, layout);
        let index = CreateGlobalSecondaryIndexAction::builder()
            .index_name(&wanted.name)
            .set_key_schema(Some(keys_of(wanted).map_err(unbuilt)?))
            .projection(whole())
            .set_provisioned_throughput(throughput(units).map_err(unbuilt)?)
            .build()
            .map_err(unbuilt)?;
        let request = self
            .sdk
            .update_table()
            .table_name(&self.address.table)
            .set_attribute_definitions(Some(
                attributes(&[wanted.hash, wanted.range]).map_err(unbuilt)?,
            ))
            .global_secondary_index_updates(
                GlobalSecondaryIndexUpdate::builder().create(index).build(),
            );
        tracing::info!("adding the index {}: DynamoDB fills it from the table", wanted.name);
        match self.call(OPERATION, || request.clone().send()).await {
            Ok(_) => Ok(None),
            Err(failure) => others_do(failure).map(Some),
        }
    }
}

/// The refusal of what is there already, or is being changed by others; any other failure is an error.
fn others_do(failure: Failure) -> Result<StoreError, StoreError> {
    const SIGNS: [&str; 3] = ["ResourceInUseException", "LimitExceededException", "already exists"];
    let error = failure.into_error(OPERATION);
    let told = error.to_string();
    if SIGNS.iter().any(|sign| told.contains(sign)) {
        tracing::debug!("{error}");
        return Ok(error);
    }
    Err(error)
}

fn unbuilt(error: BuildError) -> StoreError {
    refused(OPERATION, error.to_string())
}
