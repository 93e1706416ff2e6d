//! Reading and changing the item of leases.

use super::{
    expression::Change,
    state::{Leases, Relay},
};
use crate::{
    client::Client,
    error::{Failure, corrupt},
    item::{Item, text},
    tables::{NAME, SCOPE},
};
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValue};
use tidegate_core::StoreError;

/// What the item is called in the side table.
pub(crate) const LEASES: &str = "leases";

/// Where the item is.
pub(crate) fn leases_key() -> Item {
    Item::from([(SCOPE.to_owned(), text(LEASES)), (NAME.to_owned(), text(LEASES))])
}

impl Client {
    /// The item as it is now; `None` if there is none yet.
    pub(crate) async fn find_leases(
        &self,
        operation: &'static str,
    ) -> Result<Option<Leases>, StoreError> {
        let request = self
            .sdk
            .get_item()
            .table_name(&self.address.side_table)
            .set_key(Some(leases_key()))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.call_leases(operation, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(operation))?;
        answer.item().map(|item| read(operation, item)).transpose()
    }

    /// The item as it is now. Makes it if there is none.
    pub(crate) async fn leases(&self, operation: &'static str) -> Result<Leases, StoreError> {
        loop {
            if let Some(leases) = self.find_leases(operation).await? {
                return Ok(leases);
            }
            let mut item = Leases::first(&format!("{:032x}", rand::random::<u128>()));
            item.extend(leases_key());
            let request = self
                .sdk
                .put_item()
                .table_name(&self.address.side_table)
                .set_item(Some(item))
                .condition_expression("attribute_not_exists(Epoch)")
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            match self.call_leases(operation, || request.clone().send()).await {
                // Somebody else has made it: that one counts.
                Ok(_) | Err(Failure::Condition) => {}
                Err(failure) => return Err(failure.into_error(operation)),
            }
        }
    }

    /// A relay says that it lives. `None` if it is not known as the one that it was.
    pub(crate) async fn beat(
        &self,
        operation: &'static str,
        name: &str,
        relay: Relay,
        known: Option<i64>,
    ) -> Result<Option<Leases>, StoreError> {
        self.change_leases(operation, Change::beat(name, relay, known)).await
    }

    /// Changes the item; `None` if the condition does not hold, and nothing was changed.
    pub(crate) async fn change_leases(
        &self,
        operation: &'static str,
        change: Change,
    ) -> Result<Option<Leases>, StoreError> {
        let names = Some(change.names).filter(|names| !names.is_empty());
        let request = self
            .sdk
            .update_item()
            .table_name(&self.address.side_table)
            .set_key(Some(leases_key()))
            .update_expression(change.update)
            .condition_expression(change.condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(Some(change.values))
            .return_values(ReturnValue::AllNew)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        match self.call_leases(operation, || request.clone().send()).await {
            Ok(answer) => answer.attributes().map(|item| read(operation, item)).transpose(),
            Err(Failure::Condition) => Ok(None),
            Err(failure) => Err(failure.into_error(operation)),
        }
    }
}

fn read(operation: &'static str, item: &Item) -> Result<Leases, StoreError> {
    Leases::read(item).ok_or_else(|| {
        corrupt(
            operation,
            "the leases in the side table cannot be read: is it another program's table?",
        )
    })
}
