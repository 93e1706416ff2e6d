//! A small client, and a table behind a proxy to talk to.

use axum::http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use std::{
    env, process,
    sync::atomic::{AtomicU64, Ordering},
};
use tidegate_drill::dynamodb::{Faults, Proxy};

static TABLES: AtomicU64 = AtomicU64::new(0);

/// A proxy, and a table with two indexes: `by_group` holds items that have a `group`, in the order of their `number`;
/// `numbers` holds keys only.
pub struct Pair {
    pub proxy: Proxy,
    pub client: Client,
    /// Past the proxy.
    pub direct: Client,
    pub table: String,
}

#[derive(Clone)]
pub struct Client {
    http: legacy::Client<HttpConnector, Full<axum::body::Bytes>>,
    url: String,
}

/// The name of an error, and all that came with it.
#[derive(Debug, PartialEq)]
pub struct Refused {
    pub status: u16,
    pub kind: String,
    pub body: Value,
}

/// With faults that hold from the time on when the table is there and what is in it.
pub async fn start(seed: u64, items: &[Value], faults: Faults) -> Pair {
    let server = env::var("TIDEGATE_TEST_DYNAMODB")
        .expect("TIDEGATE_TEST_DYNAMODB is not set; `cargo xtask test` sets it");
    let proxy = Proxy::start(&server, seed).unwrap();
    let (client, direct) = (Client::new(proxy.url()), Client::new(server));
    let number = TABLES.fetch_add(1, Ordering::Relaxed);
    let table = format!("proxy-{}-{number}", process::id());
    let pair = Pair { proxy, client, direct, table };
    pair.direct.ask("CreateTable", &schema(&pair.table)).await;
    for item in items {
        pair.direct.ask("PutItem", &json!({ "TableName": pair.table, "Item": item })).await;
    }
    pair.proxy.set_faults(faults);
    pair
}

fn schema(table: &str) -> Value {
    let defined = |name, kind| json!({ "AttributeName": name, "AttributeType": kind });
    let hash = |name| json!({ "AttributeName": name, "KeyType": "HASH" });
    let range = |name| json!({ "AttributeName": name, "KeyType": "RANGE" });
    json!({
        "TableName": table,
        "AttributeDefinitions": [defined("id", "S"), defined("group", "S"), defined("number", "N")],
        "KeySchema": [hash("id")],
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_group",
                "KeySchema": [hash("group"), range("number")],
                "Projection": { "ProjectionType": "ALL" },
            },
            {
                "IndexName": "numbers",
                "KeySchema": [hash("number")],
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            },
        ],
    })
}

/// An item that both indexes show.
pub fn item(id: &str, number: u32, text: &str) -> Value {
    json!({
        "id": { "S": id },
        "group": { "S": "g" },
        "number": { "N": number.to_string() },
        "text": { "S": text },
    })
}

pub fn key(id: &str) -> Value {
    json!({ "id": { "S": id } })
}

impl Pair {
    /// A request for the table.
    pub fn on(&self, mut body: Value) -> Value {
        body["TableName"] = self.table.as_str().into();
        body
    }

    pub async fn ask(&self, operation: &str, body: Value) -> Value {
        self.client.ask(operation, &self.on(body)).await
    }

    pub async fn put(&self, item: Value) -> Value {
        self.ask("PutItem", json!({ "Item": item })).await
    }

    /// A removal of the group, as a mark would do it.
    pub async fn leave_group(&self, id: &str) -> Value {
        self.ask("UpdateItem", json!({ "Key": key(id), "UpdateExpression": "REMOVE #g", "ExpressionAttributeNames": { "#g": "group" } }))
            .await
    }

    /// What an index shows, by pages of two items, in its own order: ids and texts.
    pub async fn index(&self, client: &Client) -> Vec<String> {
        let query = json!({
            "IndexName": "by_group",
            "KeyConditionExpression": "#g = :g",
            "ExpressionAttributeNames": { "#g": "group" },
            "ExpressionAttributeValues": { ":g": { "S": "g" } },
            "Limit": 2,
        });
        self.pages(client, "Query", query).await
    }

    /// What a parallel scan of the other index shows, by id.
    pub async fn scan(&self, client: &Client) -> Vec<String> {
        let mut found = Vec::new();
        for segment in 0..3 {
            let scan = json!({ "IndexName": "numbers", "Segment": segment, "TotalSegments": 3 });
            found.extend(self.pages(client, "Scan", scan).await);
        }
        found.sort();
        found
    }

    async fn pages(&self, client: &Client, operation: &str, body: Value) -> Vec<String> {
        let (mut body, mut found) = (self.on(body), Vec::new());
        loop {
            let page = client.ask(operation, &body).await;
            for item in page["Items"].as_array().unwrap() {
                let text = item["text"]["S"].as_str().unwrap_or("-");
                found.push(format!("{} {text}", item["id"]["S"].as_str().unwrap()));
            }
            match page.get("LastEvaluatedKey") {
                Some(next) => body["ExclusiveStartKey"] = next.clone(),
                None => return found,
            }
        }
    }
}

impl Client {
    fn new(url: String) -> Self {
        Self { http: legacy::Client::builder(TokioExecutor::new()).build_http(), url }
    }

    /// How many tables have a name that is this one, or goes on behind it with a dot.
    pub async fn tables(&self, name: &str) -> usize {
        let (mut body, mut count) = (json!({}), 0);
        let is_mine = |it: &&Value| {
            let rest = it.as_str().unwrap().strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        loop {
            let page = self.ask("ListTables", &body).await;
            count += page["TableNames"].as_array().unwrap().iter().filter(is_mine).count();
            match page.get("LastEvaluatedTableName") {
                Some(last) => body["ExclusiveStartTableName"] = last.clone(),
                None => return count,
            }
        }
    }

    /// Sends a request that must succeed.
    pub async fn ask(&self, operation: &str, body: &Value) -> Value {
        self.send(operation, body).await.unwrap().unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    /// Sends a request; nothing comes back if the connection is cut.
    pub async fn send(&self, operation: &str, body: &Value) -> Option<Result<Value, Refused>> {
        let request = Request::post(&self.url)
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-date", "20260101T000000Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=a/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
            )
            .body(Full::from(body.to_string()))
            .unwrap();
        let (head, body) = self.http.request(request).await.ok()?.into_parts();
        let body: Value = serde_json::from_slice(&body.collect().await.ok()?.to_bytes()).unwrap();
        if head.status.is_success() {
            return Some(Ok(body));
        }
        let kind = body["__type"].as_str().unwrap().rsplit('#').next().unwrap().to_owned();
        Some(Err(Refused { status: head.status.as_u16(), kind, body }))
    }
}
