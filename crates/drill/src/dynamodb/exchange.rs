//! One request from its arrival to its answer.

use super::{
    Shared,
    call::Call,
    capacity,
    chance::Fate,
    counters::Count,
    refusal,
    unprocessed::hold_back,
    upstream::{Answer, Problem},
};
use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use hyper::{HeaderMap, Request, Response, body::Incoming};
use serde_json::{Map, Value};
use std::sync::Arc;
use thiserror::Error;

/// The connection is to be closed without an answer.
#[derive(Debug, Error)]
#[error("cut, as the faults ask")]
pub struct Cut;

/// Carries a request through.
pub async fn exchange(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Cut> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    // In a task of its own: what was begun is ended, and noted, also if the client goes away.
    let carried = tokio::spawn(async move { carry(&shared, &head.headers, body).await });
    let answer = carried.await.map_err(|_| Cut)??;
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    Ok(response)
}

async fn carry(shared: &Shared, headers: &HeaderMap, body: Bytes) -> Result<Answer, Cut> {
    let Some(call) = Call::read(headers, &body) else {
        let answer = shared.upstream.pass(headers, body).await;
        return Ok(answer.unwrap_or_else(|problem| refusal::broken(&problem.to_string())));
    };
    let fate = shared.chance().fate(&call.operation);
    let operation = call.operation.clone();
    let count = |count| shared.counters().add(&operation, count);
    count(Count { requests: 1, ..Count::default() });
    if !fate.latency.is_zero() {
        tokio::time::sleep(fate.latency).await;
    }
    let answer =
        if fate.cut_before { Err(Cut) } else { Ok(answer(shared, headers, call, fate).await) };
    let answer = answer.and_then(|answer| if fate.cut_after { Err(Cut) } else { Ok(answer) });
    answer.inspect_err(|Cut| count(Count { cut: 1, ..Count::default() }))
}

/// The answer of the server, or of the proxy in its place.
async fn answer(shared: &Shared, headers: &HeaderMap, mut call: Call, fate: Fate) -> Answer {
    let operation = call.operation.clone();
    let count = |count| shared.counters().add(&operation, count);
    let held = hold_back(&mut call, || shared.chance().unprocessed());
    if fate.throttled || held.all {
        // What will not be answered counts as cut, and as nothing else.
        let throttled = u64::from(!fate.cut_after);
        count(Count { throttled, ..Count::default() });
        return refusal::throttled(&call, |actions| shared.chance().pick(actions));
    }
    if let Some(code) = fate.refused {
        let refused = u64::from(!fate.cut_after);
        count(Count { refused, ..Count::default() });
        return refusal::refused(&call, code, |actions| shared.chance().pick(actions));
    }
    let asked = capacity::ask(&mut call);
    let mut answer = match forward(shared, headers, &call).await {
        Ok(answer) => answer,
        Err(problem) => refusal::broken(&problem.to_string()),
    };
    let Ok(mut body) = serde_json::from_slice::<Map<String, Value>>(&answer.body) else {
        return answer;
    };
    let cost = asked.settle(&answer, &mut body);
    let refused = cost.refused * u64::from(!fate.cut_after);
    let unprocessed = held.count * u64::from(answer.status.is_success());
    count(Count { refused, unprocessed, ..cost });
    if answer.status.is_success() {
        held.return_in(&operation, &mut body);
    }
    if operation == "ListTables" {
        shared.replicas.read().await.hide(&mut body);
    }
    answer.body = Value::from(body).to_string().into();
    answer
}

/// Lets a request pass. While indexes lag, what it writes is noted, and an index that it reads is played.
async fn forward(shared: &Shared, headers: &HeaderMap, call: &Call) -> Result<Answer, Problem> {
    let passing = shared.replicas.read().await;
    if !shared.chance().lags() {
        return pass(shared, headers, call).await;
    }
    drop(passing);
    if let Some((table, index)) = call.index() {
        return read_index(shared, headers, call, table, index).await;
    }
    let writes = call.writes();
    if writes.is_empty() && !call.changes_table() {
        return pass(shared, headers, call).await;
    }
    // One at a time, so that the state which is read behind a write is the one that it left.
    let mut replicas = shared.replicas.write().await;
    let lag_number = shared.chance().lag_number();
    replicas.begin(lag_number, &shared.upstream).await;
    let tables: Vec<&str> = writes.iter().map(|(table, _)| *table).collect();
    replicas.copy(&tables, &shared.upstream).await?;
    let answer = pass(shared, headers, call).await;
    replicas.follow(call, &shared.upstream, || shared.chance().lag()).await?;
    if let Some(table) = call.table().filter(|_| call.changes_table()) {
        replicas.forget(table, &shared.upstream).await;
    }
    answer
}

async fn read_index(
    shared: &Shared,
    headers: &HeaderMap,
    call: &Call,
    table: &str,
    index: &str,
) -> Result<Answer, Problem> {
    let mut replicas = shared.replicas.write().await;
    let lag_number = shared.chance().lag_number();
    replicas.begin(lag_number, &shared.upstream).await;
    replicas.copy(&[table], &shared.upstream).await?;
    let Some(replica) = replicas.show(table, index, &shared.upstream).await? else {
        return pass(shared, headers, call).await;
    };
    // Until the answer is there the replica must not be removed; it may be told more.
    let _shown = replicas.downgrade();
    let mut redirected = call.clone();
    redirected.body.insert("TableName".into(), replica.into());
    let mut answer = pass(shared, headers, &redirected).await?;
    let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) else { return Ok(answer) };
    if let Some(capacity) = body.get_mut("ConsumedCapacity").filter(|it| it.is_object()) {
        capacity["TableName"] = table.into();
    }
    answer.body = body.to_string().into();
    Ok(answer)
}

async fn pass(shared: &Shared, headers: &HeaderMap, call: &Call) -> Result<Answer, Problem> {
    let body = serde_json::to_vec(&call.body).expect("what was read as JSON is written as such");
    shared.upstream.pass(headers, body.into()).await
}
