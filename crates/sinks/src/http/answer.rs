//! The service's answer → what became of the items.

use crate::{
    client::Reply,
    reason,
    retry_after::retry_after,
    status::{all, common, verdict},
};
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, SystemTime};
use tidegate_core::sink::{Outcome, Verdict};

/// What was asked, as far as it decides what an answer means.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub connection: &'a str,
    pub items: usize,
    /// Whether the address names the item: then it is the item that is not found.
    pub addressed: bool,
    /// Whether the item is a message: then it is the receiver that is gone.
    pub message: bool,
    /// Whether the service can recognize the item: then a conflict may be with its own first
    /// attempt.
    pub recognizable: bool,
}

/// What became of the items.
pub fn judge(reply: &Reply, asked: Asked<'_>, now: SystemTime) -> Outcome {
    if let Some(outcome) = common(reply, asked.connection, now) {
        return outcome;
    }
    let reason = || reason::of(reply.status, &reply.body);
    match reply.status {
        // Whatever a receiver of messages says beside that is its own affair.
        200..=299 if asked.message => all(asked.items, Verdict::Done),
        200..=299 => accepted(reply, asked.items, now),
        // What is not there is at the address of this item; others have their own.
        410 if asked.addressed && asked.message => Outcome::Refused(gone(reply)),
        404 | 410 if asked.addressed => Outcome::Refused(reason()),
        410 => Outcome::Gone(gone(reply)),
        404 => Outcome::Broken(format!("there is nothing at this address: {}", reason())),
        // The first attempt, whose answer never came, may still be under way.
        409 if asked.recognizable => all(asked.items, Verdict::Retry(reason())),
        // The service failed at these items; with others it may not.
        500..=599 => all(asked.items, Verdict::Retry(reason())),
        _ => Outcome::Refused(reason()),
    }
}

fn gone(reply: &Reply) -> String {
    let reason = reason::of(reply.status, &reply.body);
    let said = reason.strip_prefix("it answered 410").unwrap_or_default();
    format!("the receiver is gone for good (410){said}")
}

/// Success for all, unless the service has an answer for each.
fn accepted(reply: &Reply, items: usize, now: SystemTime) -> Outcome {
    let problem = match results(&reply.body) {
        Some(results) if results.len() == items => {
            let wait = retry_after(&reply.headers, now);
            return Outcome::Answered(results.iter().map(|result| one(result, wait)).collect());
        }
        Some(results) => format!("it answered {} results", results.len()),
        None if reply.status != 207 => return all(items, Verdict::Done),
        None if reply.cut => "it answered more than 1 MiB".to_owned(),
        None => "it answered 207 without a list of results".to_owned(),
    };
    // Nobody knows which items were meant; under their ids they can be sent again.
    all(items, Verdict::Retry(format!("{problem} for {items} items: try a smaller `max_group`")))
}

/// `{"results":[{"status":200},{"status":422,"error":"no"}]}`. A list in which nothing has a status
/// is about something else.
fn results(body: &[u8]) -> Option<Vec<Value>> {
    #[derive(Deserialize)]
    struct Body {
        results: Vec<Value>,
    }
    let Body { results } = serde_json::from_slice(body).ok()?;
    results.iter().any(|result| status(result).is_some()).then_some(results)
}

fn status(result: &Value) -> Option<u16> {
    result["status"].as_u64()?.try_into().ok()
}

fn one(result: &Value, retry_after: Option<Duration>) -> Verdict {
    let Some(status) = status(result) else {
        return Verdict::Retry("it did not say what became of this item".to_owned());
    };
    verdict(status, retry_after, || {
        let text = match &result["error"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => reason::message(other).map_or_else(|| other.to_string(), str::to_owned),
        };
        reason::of(status, text.as_bytes())
    })
}

#[cfg(test)]
mod tests;
