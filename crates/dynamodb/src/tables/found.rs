//! What there is of an outbox, for people.

use super::layout::{Layout, wanted};
use crate::{DynamoDb, error::Failure};
use std::fmt;
use tidegate_core::StoreError;

const OPERATION: &str = "look at the tables";

/// The tables of an outbox, as DynamoDB tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundTables {
    /// The name that AWS gives the table of messages, with its region and account.
    pub arn: Option<String>,
    /// Another service that was asked instead of AWS.
    pub endpoint: Option<String>,
    /// Tables and indexes that are not there: `table orders`, `index Delivered of orders`.
    pub missing: Vec<String>,
    /// Indexes that are being filled: nothing can be read from them.
    pub being_made: Vec<String>,
}

impl fmt::Display for FoundTables {
    /// Where the messages are: account, region and endpoint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // arn:aws:dynamodb:REGION:ACCOUNT:table/NAME
        let parts: Vec<&str> = self.arn.iter().flat_map(|arn| arn.splitn(6, ':')).collect();
        match parts.as_slice() {
            [_, _, _, region, account, table] => {
                let table = table.trim_start_matches("table/");
                write!(f, "the table {table} of the account {account} in {region}")?;
            }
            _ => write!(f, "no table")?,
        }
        match &self.endpoint {
            Some(endpoint) => write!(f, ", at {endpoint}"),
            None => Ok(()),
        }
    }
}

impl DynamoDb {
    /// Looks at both tables. A table that no relay can use is an error.
    pub async fn found_tables(&self) -> Result<FoundTables, StoreError> {
        let address = self.address();
        let mut tables =
            FoundTables { endpoint: address.endpoint.clone(), ..FoundTables::default() };
        let request = self.client.sdk.describe_table().table_name(&address.table);
        match self.client.call(OPERATION, || request.clone().send()).await {
            Ok(answer) => {
                let table = answer.table();
                tables.arn = table.and_then(|table| table.table_arn()).map(str::to_owned);
                let layout = table.map(Layout::of).unwrap_or_default();
                self.client.check(&layout)?;
                tables.being_made = layout.being_made().into_iter().map(str::to_owned).collect();
                let lacking = wanted(&address.indexes).into_iter();
                let lacking = lacking.filter_map(|wanted| layout.lacks_index(wanted));
                let names = lacking.map(|it| format!("index {} of {}", it.name, address.table));
                tables.missing.extend(names);
            }
            Err(Failure::Missing(_)) => tables.missing.push(format!("table {}", address.table)),
            Err(failure) => return Err(failure.into_error(OPERATION)),
        }
        if self.client.layout(&address.side_table).await?.is_none() {
            tables.missing.push(format!("table {}", address.side_table));
        }
        Ok(tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_account_region_and_endpoint() {
        let arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/orders".to_owned();
        let mut tables = FoundTables { arn: Some(arn), ..FoundTables::default() };
        let told = "the table orders of the account 123456789012 in eu-central-1";
        assert_eq!(tables.to_string(), told);
        tables.endpoint = Some("http://127.0.0.1:8000".to_owned());
        assert_eq!(tables.to_string(), format!("{told}, at http://127.0.0.1:8000"));
    }
}
