//! The expiry of delivered messages: DynamoDB removes items whose time has come, for nothing.

use crate::{DynamoDb, client::Client, error::refused, item::name::EXPIRES_AT};
use aws_sdk_dynamodb::types::{TimeToLiveSpecification, TimeToLiveStatus};
use tidegate_core::{StoreError, outbox::Advice};

const OPERATION: &str = "migrate";

/// By which attribute items of a table expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    Off,
    /// By the one that is written with `ttl`.
    ByUs,
    /// By another one.
    By(String),
}

impl Expiry {
    fn problem(&self, table: &str) -> Option<String> {
        let Self::By(other) = self else { return None };
        Some(format!(
            "the items of {table} expire by {other}, and with `ttl` their time is written to {EXPIRES_AT}, so no \
             delivered message expires"
        ))
    }
}

const ONE_ATTRIBUTE: &str = "DynamoDB removes items by one attribute: turn the expiry by the other one off with `aws dynamodb \
     update-time-to-live` and run `tidegate migrate`, or take `ttl` out of the address";

impl Client {
    async fn expiry(&self) -> Result<Expiry, StoreError> {
        let request = self.sdk.describe_time_to_live().table_name(&self.address.table);
        let answer = self.call(OPERATION, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
        let Some(found) = answer.time_to_live_description() else { return Ok(Expiry::Off) };
        let status = found.time_to_live_status();
        if !matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)) {
            return Ok(Expiry::Off);
        }
        Ok(match found.attribute_name() {
            Some(other) if other != EXPIRES_AT => Expiry::By(other.to_owned()),
            _ => Expiry::ByUs,
        })
    }

    /// Refuses if items expire by another attribute: whoever turned that on needs it.
    pub(super) async fn own_expiry(&self) -> Result<Expiry, StoreError> {
        let expiry = self.expiry().await?;
        match expiry.problem(&self.address.table) {
            Some(problem) => Err(refused(OPERATION, format!("{problem}: {ONE_ATTRIBUTE}"))),
            None => Ok(expiry),
        }
    }

    /// Lets DynamoDB remove items whose time has come. Returns whether it did not do so before.
    pub(super) async fn turn_on_expiry(&self) -> Result<bool, StoreError> {
        if self.own_expiry().await? == Expiry::ByUs {
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

impl DynamoDb {
    /// What is wrong with the tables although they can be used. With `ttl`, it asks whether they expire.
    pub async fn advice(&self) -> Result<Vec<Advice>, StoreError> {
        if self.address().ttl.is_none() {
            return Ok(Vec::new());
        }
        let expiry = self.client.expiry().await?;
        let off = || Advice {
            problem: format!(
                "`ttl` is set, and DynamoDB removes nothing from {}: its expiry is off",
                self.address().table
            ),
            advice: "turn it on with `tidegate migrate`".to_owned(),
        };
        let advice = match &expiry {
            Expiry::ByUs => None,
            Expiry::Off => Some(off()),
            other => other
                .problem(&self.address().table)
                .map(|problem| Advice { problem, advice: ONE_ATTRIBUTE.to_owned() }),
        };
        Ok(advice.into_iter().collect())
    }
}
