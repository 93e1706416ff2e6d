//! Those REST calls of Qdrant that are used, and stricter than Qdrant: what it would let pass
//! although it is not meant is refused here.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode},
    routing::{get, post, put},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex},
};
use tokio::{net::TcpListener, task::JoinHandle};

pub struct StandIn {
    pub url: String,
    state: Arc<Mutex<Stored>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Stored {
    api_key: Option<String>,
    collections: BTreeMap<String, Collection>,
    /// The operations of each batch that was read, whatever became of it.
    batches: Vec<Vec<String>>,
}

struct Collection {
    size: usize,
    /// By the JSON of their ids.
    points: BTreeMap<String, Point>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    id: Value,
    vector: Vec<f64>,
    payload: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operations {
    operations: Vec<Operation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Operation {
    Upsert { points: Vec<Point> },
    Delete { points: Vec<Value> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    vectors: Vectors,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    size: usize,
    distance: String,
}

#[derive(Deserialize)]
struct Wanted {
    ids: Vec<Value>,
}

type Shared = State<Arc<Mutex<Stored>>>;
type Reply = (StatusCode, Json<Value>);

impl StandIn {
    pub async fn start(api_key: Option<&str>) -> Self {
        let stored = Stored { api_key: api_key.map(str::to_owned), ..Stored::default() };
        let state = Arc::new(Mutex::new(stored));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new()
            .route("/collections", get(list))
            .route("/collections/{name}", put(create).delete(remove))
            .route("/collections/{name}/points", post(retrieve))
            .route("/collections/{name}/points/count", post(count))
            .route("/collections/{name}/points/batch", post(batch))
            .with_state(Arc::clone(&state));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, state, task }
    }

    /// The operations of each batch, such as `upsert 2`.
    pub fn batches(&self) -> Vec<Vec<String>> {
        self.state.lock().unwrap().batches.clone()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn ok(result: Value) -> Reply {
    (StatusCode::OK, Json(json!({ "result": result, "status": "ok", "time": 0.001 })))
}

fn failed(status: u16, error: impl Into<String>) -> Reply {
    let body = json!({ "status": { "error": error.into() }, "time": 0.001 });
    (StatusCode::from_u16(status).unwrap(), Json(body))
}

fn missing(name: &str) -> Reply {
    failed(404, format!("Not found: Collection `{name}` doesn't exist!"))
}

/// Reads a body that says that it is JSON, and is.
fn read<T: for<'de> Deserialize<'de>>(headers: &HeaderMap, body: &Bytes) -> Result<T, Reply> {
    if headers.get("content-type").is_none_or(|kind| kind != "application/json") {
        return Err(failed(415, "no JSON"));
    }
    let malformed = |error| failed(400, format!("Format error in JSON body: {error}"));
    serde_json::from_slice(body).map_err(malformed)
}

impl Stored {
    fn admit(&self, headers: &HeaderMap) -> Result<(), Reply> {
        let given = headers.get("api-key").and_then(|value| value.to_str().ok());
        match (&self.api_key, given) {
            (None, _) => Ok(()),
            (Some(key), Some(given)) if key == given => Ok(()),
            (Some(_), None) => Err(failed(401, "Must provide an API key")),
            (Some(_), Some(_)) => Err(failed(401, "Invalid API key or JWT")),
        }
    }
}

async fn list(State(state): Shared, headers: HeaderMap) -> Result<Reply, Reply> {
    let state = state.lock().unwrap();
    state.admit(&headers)?;
    let names: Vec<_> = state.collections.keys().map(|name| json!({ "name": name })).collect();
    Ok(ok(json!({ "collections": names })))
}

async fn create(
    State(state): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Reply, Reply> {
    let mut state = state.lock().unwrap();
    state.admit(&headers)?;
    let Create { vectors } = read(&headers, &body)?;
    if !["Cosine", "Euclid", "Dot", "Manhattan"].contains(&vectors.distance.as_str()) {
        return Err(failed(400, "Format error in JSON body: unknown variant"));
    }
    if state.collections.contains_key(&name) {
        return Err(failed(409, format!("Wrong input: Collection `{name}` already exists!")));
    }
    let collection = Collection { size: vectors.size, points: BTreeMap::new() };
    state.collections.insert(name, collection);
    Ok(ok(true.into()))
}

async fn remove(State(state): Shared, Path(name): Path<String>) -> Reply {
    ok(state.lock().unwrap().collections.remove(&name).is_some().into())
}

async fn count(State(state): Shared, Path(name): Path<String>) -> Result<Reply, Reply> {
    let state = state.lock().unwrap();
    let collection = state.collections.get(&name).ok_or_else(|| missing(&name))?;
    Ok(ok(json!({ "count": collection.points.len() })))
}

async fn retrieve(
    State(state): Shared,
    Path(name): Path<String>,
    Json(wanted): Json<Wanted>,
) -> Result<Reply, Reply> {
    let state = state.lock().unwrap();
    let collection = state.collections.get(&name).ok_or_else(|| missing(&name))?;
    let found = wanted.ids.iter().filter_map(|id| collection.points.get(&id.to_string()));
    let point = |it: &Point| json!({ "id": it.id, "payload": it.payload, "vector": it.vector });
    Ok(ok(found.map(point).collect()))
}

async fn batch(
    State(state): Shared,
    Path(name): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Reply, Reply> {
    let mut state = state.lock().unwrap();
    state.admit(&headers)?;
    if query != HashMap::from([("wait".to_owned(), "true".to_owned())]) {
        return Err(failed(400, format!("nothing but `wait=true` is meant: {query:?}")));
    }
    let Operations { operations } = read(&headers, &body)?;
    let labels = operations.iter().map(|operation| match operation {
        Operation::Upsert { points } => format!("upsert {}", points.len()),
        Operation::Delete { points } => format!("delete {}", points.len()),
    });
    state.batches.push(labels.collect());
    let collection = state.collections.get_mut(&name).ok_or_else(|| missing(&name))?;
    let mut results = Vec::new();
    for (number, operation) in operations.into_iter().enumerate() {
        // Those before one that fails stay applied.
        collection.apply(operation)?;
        results.push(json!({ "operation_id": number, "status": "completed" }));
    }
    Ok(ok(results.into()))
}

impl Collection {
    fn apply(&mut self, operation: Operation) -> Result<(), Reply> {
        match operation {
            Operation::Upsert { points } => {
                check_ids(points.iter().map(|point| &point.id))?;
                if let Some(bad) = points.iter().find(|point| point.vector.len() != self.size) {
                    let (size, got) = (self.size, bad.vector.len());
                    let error = format!("Vector dimension error: expected dim: {size}, got {got}");
                    return Err(failed(400, format!("Wrong input: {error}")));
                }
                self.points.extend(points.into_iter().map(|point| (point.id.to_string(), point)));
            }
            Operation::Delete { points } => {
                check_ids(points.iter())?;
                points.iter().for_each(|id| drop(self.points.remove(&id.to_string())));
            }
        }
        Ok(())
    }
}

/// Numbers without a sign, or UUIDs; and each once.
fn check_ids<'a>(ids: impl Iterator<Item = &'a Value>) -> Result<(), Reply> {
    let mut seen = HashSet::new();
    for id in ids {
        let uuid = |text: &str| {
            let lengths: Vec<_> = text.split('-').map(str::len).collect();
            lengths == [8, 4, 4, 4, 12]
        };
        if !id.is_u64() && !id.as_str().is_some_and(uuid) {
            return Err(failed(400, format!("Format error in JSON body: value {id} is no id")));
        }
        if !seen.insert(id.to_string()) {
            return Err(failed(400, "a point is twice in one operation"));
        }
    }
    Ok(())
}
