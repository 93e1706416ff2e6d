//! A request as far as the proxy understands it: the operation, and the items that it reads or writes.

use hyper::HeaderMap;
use serde_json::{Map, Value};

/// The header that names the operation, behind the last dot.
pub const TARGET: &str = "x-amz-target";

/// A request that was understood.
#[derive(Clone, Debug)]
pub struct Call {
    pub operation: String,
    pub body: Map<String, Value>,
}

impl Call {
    /// Nothing if it names no operation, or if its body is no JSON object.
    pub fn read(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let target = headers.get(TARGET)?.to_str().ok()?;
        let operation = target.rsplit('.').next()?.to_owned();
        Some(Self { operation, body: serde_json::from_slice(body).ok()? })
    }

    pub fn table(&self) -> Option<&str> {
        self.body.get("TableName")?.as_str()
    }

    /// The table and the index that are read, if it is an index.
    pub fn index(&self) -> Option<(&str, &str)> {
        let reads = matches!(self.operation.as_str(), "Query" | "Scan");
        let index = self.body.get("IndexName").filter(|_| reads)?.as_str()?;
        Some((self.table()?, index))
    }

    /// Whether it makes, changes or removes a table.
    pub fn changes_table(&self) -> bool {
        matches!(self.operation.as_str(), "CreateTable" | "UpdateTable" | "DeleteTable")
    }

    /// The tables that it writes to, each with an object that holds the key: the item or the key itself.
    pub fn writes(&self) -> Vec<(&str, &Map<String, Value>)> {
        match self.operation.as_str() {
            "PutItem" | "UpdateItem" | "DeleteItem" => written(&self.body).into_iter().collect(),
            "TransactWriteItems" => {
                let actions = array(&self.body, "TransactItems").filter_map(Value::as_object);
                actions.flat_map(Map::values).filter_map(|it| written(it.as_object()?)).collect()
            }
            "BatchWriteItem" => {
                let tables = self.body.get("RequestItems").and_then(Value::as_object);
                tables.into_iter().flatten().flat_map(|(table, it)| batch(table, it)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The list of this name; empty if there is none.
pub fn array<'a>(object: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    object.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// A check of a condition has a key and writes nothing; reading that item again does no harm.
fn written(action: &Map<String, Value>) -> Option<(&str, &Map<String, Value>)> {
    let item = action.get("Item").or_else(|| action.get("Key"))?.as_object()?;
    Some((action.get("TableName")?.as_str()?, item))
}

fn batch<'a>(
    table: &'a str,
    requests: &'a Value,
) -> impl Iterator<Item = (&'a str, &'a Map<String, Value>)> {
    let requests = requests.as_array().into_iter().flatten().filter_map(Value::as_object);
    requests.flat_map(Map::values).filter_map(move |request| {
        let request = request.as_object()?;
        Some((table, request.get("Item").or_else(|| request.get("Key"))?.as_object()?))
    })
}
