//! Tables and indexes as DynamoDB makes and describes them, where servers that play it are simpler: descriptions lag
//! behind changes, and the throughput of an index must fit the table's.

use super::{Shared, call::Call, refusal, upstream::Answer};
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Tables that were changed: how many more descriptions are as before, and that description, if there was a table.
pub type Stale = HashMap<String, (u32, Option<Value>)>;

/// What is answered instead of the server; `None` if it is to answer itself.
pub async fn answer(shared: &Shared, call: &Call) -> Option<Answer> {
    let table = call.table()?;
    if call.operation == "DescribeTable" {
        return describe(shared, table);
    }
    if !matches!(call.operation.as_str(), "CreateTable" | "UpdateTable") {
        return None;
    }
    let before = shared.upstream.ask("DescribeTable", &json!({ "TableName": table })).await.ok();
    if let Some(problem) = before.as_ref().and_then(|before| misfit(call, &before["Table"])) {
        return Some(refusal::told("ValidationException", problem));
    }
    let lasts = shared.chance().stale_descriptions();
    if lasts > 0 {
        shared.stale().insert(table.to_owned(), (lasts, before));
    }
    None
}

fn describe(shared: &Shared, table: &str) -> Option<Answer> {
    let mut stale = shared.stale();
    let (left, before) = stale.get_mut(table)?;
    *left = left.checked_sub(1)?;
    Some(match before {
        Some(before) => refusal::answer(StatusCode::OK, before),
        None => refusal::told("ResourceNotFoundException", "Requested resource not found"),
    })
}

/// Why a new index does not fit a table.
fn misfit(call: &Call, table: &Value) -> Option<&'static str> {
    let updates = call.body.get("GlobalSecondaryIndexUpdates").and_then(Value::as_array)?;
    let is_on_demand = table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST";
    let created = updates.iter().filter_map(|update| update.get("Create"));
    let has_units = |index: &Value| index.get("ProvisionedThroughput").is_some();
    created.map(has_units).find_map(|has_units| match (is_on_demand, has_units) {
        (false, false) => Some(
            "One or more parameter values were invalid: No provisioned throughput specified for the global secondary \
             index",
        ),
        (true, true) => Some(
            "One or more parameter values were invalid: ProvisionedThroughput should not be specified for an index \
             when BillingMode is PAY_PER_REQUEST",
        ),
        _ => None,
    })
}
