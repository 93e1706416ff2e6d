//! Tables on the server that play the indexes of other tables as they were a while ago.

use super::{
    backlog::Backlog,
    call::{Call, array},
    upstream::{Problem, Upstream},
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// Most writes in one request.
const BATCH: usize = 25;

/// Most keys in one request.
const KEYS: usize = 100;

/// Makes the names of each proxy's replicas its own.
static PROXIES: AtomicU64 = AtomicU64::new(0);

/// The replicas of one proxy.
pub struct Replicas {
    suffix: String,
    /// Which lag they play. They are of no use in a later one.
    lag_number: u64,
    tables: BTreeMap<String, Table>,
}

/// A table that is followed.
struct Table {
    /// The attributes of its key.
    key: Vec<String>,
    /// For each index, what its replica has still to be told.
    indexes: BTreeMap<String, Backlog>,
}

impl Default for Replicas {
    fn default() -> Self {
        let number = PROXIES.fetch_add(1, Ordering::Relaxed);
        let suffix = format!(".lag-{}-{number}", process::id());
        Self { suffix, lag_number: 0, tables: BTreeMap::new() }
    }
}

impl Replicas {
    /// Forgets what was copied while another lag was played.
    pub async fn begin(&mut self, lag_number: u64, upstream: &Upstream) {
        if self.lag_number != lag_number {
            self.clear(upstream).await;
            self.lag_number = lag_number;
        }
    }

    /// From now on the tables are followed: their replicas are as they are now.
    pub async fn copy(&mut self, tables: &[&str], upstream: &Upstream) -> Result<(), Problem> {
        for name in tables {
            if self.tables.contains_key(*name) {
                continue;
            }
            let described = upstream.ask("DescribeTable", &json!({ "TableName": name })).await;
            // The client will be told that there is no such table.
            let Ok(described) = described else { continue };
            let table = self.create(name, &described["Table"], upstream).await?;
            let replicas: Vec<String> =
                table.indexes.keys().map(|index| self.replica(name, index)).collect();
            copy_items(name, &replicas, upstream).await?;
            self.tables.insert((*name).to_owned(), table);
        }
        Ok(())
    }

    /// Notes what a request did to the items that it names. `lag` says how late an index shows it.
    pub async fn follow(
        &mut self,
        call: &Call,
        upstream: &Upstream,
        mut lag: impl FnMut() -> Duration,
    ) -> Result<(), Problem> {
        let now = Instant::now();
        for (name, keys) in self.written(call) {
            let Some(table) = self.tables.get_mut(&name) else { continue };
            for (text, change) in table.read(&name, keys, upstream).await? {
                for backlog in table.indexes.values_mut() {
                    backlog.note(text.clone(), change.clone(), now + lag());
                }
            }
        }
        Ok(())
    }

    /// The replica that plays this index, after it was told what is due; nothing if there is none.
    pub async fn show(
        &mut self,
        table: &str,
        index: &str,
        upstream: &Upstream,
    ) -> Result<Option<String>, Problem> {
        let name = self.replica(table, index);
        let followed = self.tables.get_mut(table).and_then(|it| it.indexes.get_mut(index));
        let Some(backlog) = followed else { return Ok(None) };
        write(&name, backlog.take_due(Instant::now()), upstream).await?;
        Ok(Some(name))
    }

    /// Tells all replicas all.
    pub async fn catch_up(&mut self, upstream: &Upstream) -> Result<(), Problem> {
        let suffix = self.suffix.clone();
        for (table, it) in &mut self.tables {
            for (index, backlog) in &mut it.indexes {
                write(&replica(table, index, &suffix), backlog.take_all(), upstream).await?;
            }
        }
        Ok(())
    }

    /// Follows a table no longer.
    pub async fn forget(&mut self, table: &str, upstream: &Upstream) {
        let Some(forgotten) = self.tables.remove(table) else { return };
        for index in forgotten.indexes.keys() {
            remove(&self.replica(table, index), upstream).await;
        }
    }

    /// Follows none any longer.
    pub async fn clear(&mut self, upstream: &Upstream) {
        let tables: Vec<String> = self.tables.keys().cloned().collect();
        for table in tables {
            self.forget(&table, upstream).await;
        }
    }

    /// Takes the replicas out of a list of tables.
    pub fn hide(&self, answer: &mut Map<String, Value>) {
        let names = answer.get_mut("TableNames").and_then(Value::as_array_mut);
        let ours = |name: &Value| name.as_str().is_some_and(|name| name.ends_with(&self.suffix));
        names.into_iter().for_each(|names| names.retain(|name| !ours(name)));
    }

    fn replica(&self, table: &str, index: &str) -> String {
        replica(table, index, &self.suffix)
    }

    /// The keys that a request writes, by table and each once.
    fn written(&self, call: &Call) -> BTreeMap<String, BTreeMap<String, Value>> {
        let mut written: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        for (name, item) in call.writes() {
            let table = self.tables.get(name).filter(|table| !table.indexes.is_empty());
            let Some((text, key)) = table.and_then(|table| table.key_of(item)) else { continue };
            written.entry(name.to_owned()).or_default().insert(text, key);
        }
        written
    }

    async fn create(
        &self,
        table: &str,
        described: &Value,
        upstream: &Upstream,
    ) -> Result<Table, Problem> {
        let mut indexes = BTreeMap::new();
        let all = described["GlobalSecondaryIndexes"].as_array();
        for index in all.into_iter().flatten() {
            let name = index["IndexName"].as_str().unwrap_or_default();
            let replica = self.replica(table, name);
            upstream.ask("CreateTable", &replica_of(&replica, described, index)).await?;
            indexes.insert(name.to_owned(), Backlog::default());
        }
        Ok(Table { key: names(&described["KeySchema"]), indexes })
    }
}

impl Table {
    /// The key of an item: as text, and as DynamoDB wants it. Nothing if a part is missing.
    fn key_of(&self, item: &Map<String, Value>) -> Option<(String, Value)> {
        let part = |name: &String| Some((name.clone(), item.get(name)?.clone()));
        let key: Map<String, Value> = self.key.iter().map(part).collect::<Option<_>>()?;
        let text: Vec<String> = self.key.iter().map(|name| key[name].to_string()).collect();
        Some((text.join(" "), key.into()))
    }

    /// Reads items as they are now, and returns what makes a replica hold the same.
    async fn read(
        &self,
        name: &str,
        mut keys: BTreeMap<String, Value>,
        upstream: &Upstream,
    ) -> Result<BTreeMap<String, Value>, Problem> {
        let delete = |key: &Value| json!({ "DeleteRequest": { "Key": key } });
        let mut changes: BTreeMap<_, _> =
            keys.iter().map(|(text, key)| (text.clone(), delete(key))).collect();
        while !keys.is_empty() {
            let some: Vec<Value> = keys.values().take(KEYS).cloned().collect();
            let asked = json!({ name: { "Keys": some, "ConsistentRead": true } });
            let answer = upstream.ask("BatchGetItem", &json!({ "RequestItems": asked })).await?;
            let again = answer["UnprocessedKeys"][name]["Keys"].as_array().into_iter().flatten();
            let again: BTreeSet<String> = again.filter_map(|key| self.text_of(key)).collect();
            let read: Vec<String> = keys.keys().take(KEYS).cloned().collect();
            read.iter().filter(|text| !again.contains(*text)).for_each(|text| {
                keys.remove(text);
            });
            for item in answer["Responses"][name].as_array().into_iter().flatten() {
                let put = json!({ "PutRequest": { "Item": item } });
                self.text_of(item).into_iter().for_each(|text| {
                    changes.insert(text, put.clone());
                });
            }
        }
        Ok(changes)
    }

    fn text_of(&self, item: &Value) -> Option<String> {
        self.key_of(item.as_object()?).map(|(text, _)| text)
    }
}

fn replica(table: &str, index: &str, suffix: &str) -> String {
    format!("{table}.{index}{suffix}")
}

/// A table like the one described, with this index alone.
fn replica_of(name: &str, described: &Value, index: &Value) -> Value {
    let used: BTreeSet<String> =
        names(&described["KeySchema"]).into_iter().chain(names(&index["KeySchema"])).collect();
    let defined = described["AttributeDefinitions"].as_array().into_iter().flatten();
    let is_used = |it: &&Value| it["AttributeName"].as_str().is_some_and(|it| used.contains(it));
    let index = json!({
        "IndexName": index["IndexName"],
        "KeySchema": index["KeySchema"],
        "Projection": index["Projection"],
    });
    json!({
        "TableName": name,
        "KeySchema": described["KeySchema"],
        "AttributeDefinitions": defined.filter(is_used).collect::<Vec<_>>(),
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [index],
    })
}

/// The attributes of a key.
fn names(schema: &Value) -> Vec<String> {
    let parts = schema.as_array().into_iter().flatten();
    parts.filter_map(|part| part["AttributeName"].as_str().map(str::to_owned)).collect()
}

async fn copy_items(table: &str, replicas: &[String], upstream: &Upstream) -> Result<(), Problem> {
    let mut scan = json!({ "TableName": table, "ConsistentRead": true });
    loop {
        let Value::Object(page) = upstream.ask("Scan", &scan).await? else { return Ok(()) };
        let put = |item: &Value| json!({ "PutRequest": { "Item": item } });
        let items: Vec<Value> = array(&page, "Items").map(put).collect();
        for replica in replicas {
            write(replica, items.clone(), upstream).await?;
        }
        let Some(next) = page.get("LastEvaluatedKey") else { return Ok(()) };
        scan["ExclusiveStartKey"] = next.clone();
    }
}

/// Carries out writes of different items.
async fn write(table: &str, writes: Vec<Value>, upstream: &Upstream) -> Result<(), Problem> {
    for some in writes.chunks(BATCH) {
        let mut left = json!({ table: some });
        while left.get(table).is_some() {
            let answer = upstream.ask("BatchWriteItem", &json!({ "RequestItems": left })).await?;
            left = answer["UnprocessedItems"].clone();
        }
    }
    Ok(())
}

/// One that cannot be removed only takes room.
async fn remove(table: &str, upstream: &Upstream) {
    let _ = upstream.ask("DeleteTable", &json!({ "TableName": table })).await;
}
