//! Answers: their bodies, and the headers that all of them carry.

use crate::{
    dataverse,
    ledger::{Throttle, round_up},
    limits::{Limit, Quota, Standing},
    spec::{BudgetKind, Spec},
};
use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

/// Whose manners an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    Plain,
    Dataverse,
}

/// An answer with a JSON body.
pub fn json(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// An answer that says what is wrong.
pub fn problem(flavor: Flavor, status: StatusCode, message: &str) -> Response {
    match flavor {
        Flavor::Plain => json(status, json!({ "error": message }).to_string()),
        Flavor::Dataverse => dataverse::error(status, dataverse::code(status), message),
    }
}

/// The answer to a request that exceeds a limit.
pub fn throttled(flavor: Flavor, spec: &Spec, throttle: &Throttle) -> Response {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let (name, message) = exceeded(spec, throttle.limit);
    let mut response = match flavor {
        Flavor::Plain => json(status, json!({ "error": message, "limit": name }).to_string()),
        Flavor::Dataverse => dataverse::throttled(spec, throttle.limit),
    };
    if let Some(retry_after) = throttle.retry_after {
        set(&mut response, header::RETRY_AFTER, retry_after.header());
    }
    dress(flavor, spec, throttle.standing, response)
}

/// Adds what each answer says beside its result.
pub fn dress(flavor: Flavor, spec: &Spec, standing: Standing, mut response: Response) -> Response {
    if let Some(hint) = spec.hint {
        let name = HeaderName::from_static("x-ms-dop-hint");
        set(&mut response, name, hint.parallelism.to_string());
    }
    if let Some(quota) = standing.quota.filter(|_| spec.ratelimit_headers) {
        tell_quota(&mut response, quota);
    }
    if flavor == Flavor::Dataverse {
        dataverse::dress(standing, &mut response);
    }
    response
}

/// Sets a header whose value the service wrote itself.
pub fn set(response: &mut Response, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

fn tell_quota(response: &mut Response, quota: Quota) {
    let values = [
        ("ratelimit-limit", quota.limit),
        ("ratelimit-remaining", quota.remaining),
        ("ratelimit-reset", round_up(quota.reset_in)),
    ];
    for (name, value) in values {
        set(response, HeaderName::from_static(name), value.to_string());
    }
}

fn exceeded(spec: &Spec, limit: Limit) -> (&'static str, String) {
    match limit {
        Limit::Concurrency => {
            let limit = spec.concurrency.map_or(0, |it| it.limit);
            ("concurrency", format!("more than {limit} requests in flight"))
        }
        Limit::Rate => {
            let limit = spec.rate.map_or(0, |it| it.per_second);
            ("rate", format!("more than {limit} requests in the last second"))
        }
        Limit::Budget(index) => {
            let budget = spec.budgets[index];
            let (limit, seconds) = (budget.limit, budget.window.as_secs_f64());
            match budget.kind {
                BudgetKind::Requests => {
                    ("requests", format!("more than {limit} requests in the last {seconds} s"))
                }
                BudgetKind::ExecutionSeconds => (
                    "execution_seconds",
                    format!("more than {limit} s of execution in the last {seconds} s"),
                ),
            }
        }
    }
}
