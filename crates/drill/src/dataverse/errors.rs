//! Errors with the codes that Dataverse uses.

use crate::{
    answer::json,
    limits::Limit,
    spec::{BudgetKind, Spec},
    work::Refusal,
};
use axum::{http::StatusCode, response::Response};
use serde_json::json;
use std::time::Duration;

/// A record was refused.
pub const REFUSED: &str = "0x80040237";

/// `{"error":{"code":…,"message":…}}`
pub fn error(status: StatusCode, code: &str, message: &str) -> Response {
    json(status, body(code, message))
}

pub fn body(code: &str, message: &str) -> String {
    json!({ "error": { "code": code, "message": message } }).to_string()
}

/// The code of an error that is not about a record.
pub fn code(status: StatusCode) -> &'static str {
    match status {
        // "Error identified in Payload provided by the user".
        StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE => "0x80048d19",
        // "Resource not found for the segment".
        StatusCode::NOT_FOUND => "0x8006088a",
        // Not implemented.
        StatusCode::NOT_IMPLEMENTED => "0x80004001",
        // "An unexpected error occurred".
        StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE => "0x80040216",
        _ => "",
    }
}

/// The code of a refused write.
pub fn refusal_code(refusal: &Refusal) -> &'static str {
    match refusal.status {
        StatusCode::BAD_REQUEST => REFUSED,
        status => code(status),
    }
}

/// One of the three service protection errors.
pub fn throttled(spec: &Spec, limit: Limit) -> Response {
    let (code, message) = match limit {
        Limit::Concurrency => {
            let limit = spec.concurrency.map_or(0, |it| it.limit);
            ("0x80072326", format!("Number of concurrent requests exceeded the limit of {limit}."))
        }
        Limit::Rate => {
            let limit = spec.rate.map_or(0, |it| it.per_second);
            ("0x80072322", requests(limit as f64, Duration::from_secs(1)))
        }
        Limit::Budget(index) => {
            let budget = spec.budgets[index];
            match budget.kind {
                BudgetKind::Requests => ("0x80072322", requests(budget.limit, budget.window)),
                BudgetKind::ExecutionSeconds => {
                    ("0x80072321", execution(budget.limit, budget.window))
                }
            }
        }
    };
    error(StatusCode::TOO_MANY_REQUESTS, code, &message)
}

fn requests(limit: f64, window: Duration) -> String {
    let window = window.as_secs_f64();
    format!(
        "Number of requests exceeded the limit of {limit} over time window of {window} seconds."
    )
}

fn execution(seconds: f64, window: Duration) -> String {
    let (limit, window) = (seconds * 1e3, window.as_secs_f64());
    format!(
        "Combined execution time of incoming requests exceeded limit of {limit} milliseconds over \
         time window of {window} seconds. Decrease number of concurrent requests or reduce the \
         duration of requests and try again later."
    )
}
