//! `/records`: plain records, as lines or as JSON.

use crate::{
    answer::{Flavor, json},
    app::App,
    exchange::{Asked, exchange},
    json::{id_text, pick},
    spec::Spec,
    work::{Refusal, Rule, Work, Write, is_unlucky, key, key_of_deletion},
};
use axum::{
    Router,
    extract::{Path, Request, State},
    http::StatusCode,
    response::Response,
    routing::post,
};
use serde_json::{json, value::RawValue};
use std::{fmt::Write as _, sync::Arc};

pub fn router() -> Router<Arc<App>> {
    let one = post(write_one).put(write_one).patch(write_one).delete(delete_one);
    Router::new().route("/records", post(write).put(write).patch(write)).route("/records/{id}", one)
}

async fn write(State(app): State<Arc<App>>, request: Request) -> Response {
    exchange(app, Flavor::Plain, request, |asked| understand(asked, None)).await
}

async fn write_one(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    exchange(app, Flavor::Plain, request, |asked| understand(asked, Some(&id))).await
}

async fn delete_one(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    exchange(app, Flavor::Plain, request, |asked| {
        let id = asked.header("idempotency-key").unwrap_or(&id);
        Ok(work(asked.spec, vec![Write { key: key_of_deletion(key(id)), refusal: None }]))
    })
    .await
}

fn understand(asked: &Asked, path_id: Option<&str>) -> Result<Work, Refusal> {
    let texts = texts(asked)?;
    if texts.is_empty() {
        return Err(Refusal::bad("there is no record in the request"));
    }
    // One key cannot stand for several records.
    let idempotency_key = asked.header("idempotency-key").filter(|_| texts.len() == 1);
    let writes = texts.into_iter().map(|text| record(asked.spec, text, idempotency_key, path_id));
    Ok(work(asked.spec, writes.collect()))
}

fn texts<'a>(asked: &'a Asked) -> Result<Vec<&'a str>, Refusal> {
    let body = asked.text()?.trim();
    match asked.media_type() {
        "application/x-ndjson" => {
            Ok(body.lines().map(str::trim).filter(|line| !line.is_empty()).collect())
        }
        "application/json" if body.starts_with('[') => {
            let items: Vec<&RawValue> = serde_json::from_str(body)
                .map_err(|error| Refusal::bad(format!("the body is no JSON array: {error}")))?;
            Ok(items.into_iter().map(RawValue::get).collect())
        }
        "application/json" => Ok(vec![body]),
        other => {
            let message =
                format!("cannot read `{other}`: send application/json or application/x-ndjson");
            Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
        }
    }
}

fn record(spec: &Spec, text: &str, idempotency_key: Option<&str>, path_id: Option<&str>) -> Write {
    let unprocessable = |message| Some(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, message));
    let [id, bad] = match pick(text, [&spec.id_field, &spec.bad_field]) {
        Ok(fields) => fields,
        Err(error) => {
            let refusal = unprocessable(format!("is no JSON object: {error}"));
            return Write { key: key(text), refusal };
        }
    };
    let key = match (idempotency_key, id.and_then(id_text)) {
        (Some(given), _) => key(given),
        (None, Some(id)) => key(&id),
        (None, None) => key(path_id.unwrap_or(text)),
    };
    let refusal = if bad.is_some_and(|bad| bad.get() == "true") {
        unprocessable(format!("has `{}` = true", spec.bad_field))
    } else if is_unlucky(key, spec.bad_share, spec.seed) {
        unprocessable("is among the share that is refused".to_owned())
    } else {
        None
    };
    Write { key, refusal }
}

fn work(spec: &Spec, writes: Vec<Write>) -> Work {
    if spec.per_record_answers {
        Work { writes, rule: Rule::Each, reply: Box::new(one_by_one) }
    } else {
        Work { writes, rule: Rule::Together, reply: Box::new(together) }
    }
}

fn together(writes: &[Write]) -> Response {
    let mut refused =
        writes.iter().enumerate().filter_map(|(i, write)| Some((i, write.refusal.as_ref()?)));
    match refused.next() {
        None => json(StatusCode::OK, format!("{{\"stored\":{}}}", writes.len())),
        Some((index, refusal)) => {
            let error = format!("record {index} {}; nothing is stored", refusal.message);
            json(StatusCode::BAD_REQUEST, json!({ "error": error, "index": index }).to_string())
        }
    }
}

fn one_by_one(writes: &[Write]) -> Response {
    let mut body = String::with_capacity(writes.len() * 16 + 16);
    body.push_str("{\"results\":[");
    for (index, write) in writes.iter().enumerate() {
        body.push_str(if index == 0 { "" } else { "," });
        match &write.refusal {
            None => body.push_str("{\"status\":200}"),
            Some(refusal) => {
                let (status, error) = (refusal.status.as_u16(), json!(refusal.message));
                // Writing to a string cannot fail.
                let _ = write!(body, "{{\"status\":{status},\"error\":{error}}}");
            }
        }
    }
    body.push_str("]}");
    json(StatusCode::MULTI_STATUS, body)
}
