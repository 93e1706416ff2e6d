//! Makes the tables, or brings one that is there to what is needed.

use super::{
    create::{Definition, attributes, keys_of, throughput, whole},
    layout::{Layout, Wanted},
};
use crate::{
    DynamoDb,
    client::Client,
    error::{Failure, refused},
    item::name::EXPIRES_AT,
};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::{
    CreateGlobalSecondaryIndexAction, GlobalSecondaryIndexUpdate, TimeToLiveSpecification,
    TimeToLiveStatus,
};
use std::time::Duration;
use tidegate_core::{Class, Kind, Migrate, StoreError, migrate::Schema};
use tokio::time::{Instant, sleep};

const OPERATION: &str = "migrate";

/// How often it is looked whether a table or an index is ready.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is said what is waited for.
const TELL: Duration = Duration::from_secs(30);

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
        while let Some(wanted) =
            client.ready(&client.address.table).await?.lacks(&client.address.indexes)
        {
            client.add_index(&wanted).await?;
            applied.push(wanted.applied);
        }
        if client.layout(&client.address.side_table).await?.is_none() {
            client
                .create(&client.address.side_table, Definition::of_side_table(&client.address))
                .await?;
            applied.push("side table");
        }
        client.ready(&client.address.side_table).await?;
        if client.address.ttl.is_some() && client.turn_on_ttl().await? {
            applied.push("expiry of delivered messages");
        }
        self.learn_layout().await?;
        Ok(applied)
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        let client = &self.client;
        let Some(layout) = client.layout(&client.address.table).await? else {
            return Ok(Schema::Missing);
        };
        client.check(&layout)?;
        if layout.lacks(&client.address.indexes).is_some() {
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

    /// Refuses a table that is no outbox.
    fn check(&self, layout: &Layout) -> Result<(), StoreError> {
        let problem = layout.problem().or_else(|| layout.conflict(&self.address.indexes));
        problem.map_or(Ok(()), |problem| {
            let problem = format!("{}: {problem}", self.address.place());
            Err(StoreError::new(Kind::BadAddress, Class::Permanent, "open the store", problem))
        })
    }

    async fn create(
        &self,
        table: &str,
        definition: Result<Definition, aws_sdk_dynamodb::error::BuildError>,
    ) -> Result<(), StoreError> {
        let definition = definition.map_err(|error| refused(OPERATION, error.to_string()))?;
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
            Err(failure) if self.layout(table).await?.is_some() => {
                tracing::debug!("{}", failure.into_error(OPERATION));
                Ok(())
            }
            Err(failure) => Err(failure.into_error(OPERATION)),
        }
    }

    async fn add_index(&self, wanted: &Wanted) -> Result<(), StoreError> {
        let unbuilt =
            |error: aws_sdk_dynamodb::error::BuildError| refused(OPERATION, error.to_string());
        let index = CreateGlobalSecondaryIndexAction::builder()
            .index_name(&wanted.name)
            .set_key_schema(Some(keys_of(wanted).map_err(unbuilt)?))
            .projection(whole())
            .set_provisioned_throughput(throughput(self.address.billing).map_err(unbuilt)?)
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
        let answer = self.call(OPERATION, || request.clone().send()).await;
        answer.map(|_| ()).map_err(|failure| failure.into_error(OPERATION))
    }

    /// Waits until a table and its indexes can be used. Filling an index takes as long as the table is large.
    async fn ready(&self, table: &str) -> Result<Layout, StoreError> {
        let mut told = Instant::now();
        loop {
            let layout = self.layout(table).await?;
            let layout =
                layout.ok_or_else(|| refused(OPERATION, format!("the table {table} is gone")))?;
            if table == self.address.table {
                self.check(&layout)?;
            }
            if layout.is_ready() {
                return Ok(layout);
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                tracing::info!("waiting for {table} {}", layout.being_made().join(", "));
            }
            sleep(LOOK).await;
        }
    }

    /// Lets DynamoDB remove items whose time has come. Returns whether it did not do so before.
    async fn turn_on_ttl(&self) -> Result<bool, StoreError> {
        let request = self.sdk.describe_time_to_live().table_name(&self.address.table);
        let answer = self.call(OPERATION, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
        let status = answer.time_to_live_description().and_then(|it| it.time_to_live_status());
        if matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)) {
            return Ok(false);
        }
        let specification =
            TimeToLiveSpecification::builder().enabled(true).attribute_name(EXPIRES_AT).build();
        let specification = specification.map_err(|error| refused(OPERATION, error.to_string()))?;
        let request = self
            .sdk
            .update_time_to_live()
            .table_name(&self.address.table)
            .time_to_live_specification(specification);
        let answer = self.call(OPERATION, || request.clone().send()).await;
        answer.map(|_| true).map_err(|failure| failure.into_error(OPERATION))
    }
}
