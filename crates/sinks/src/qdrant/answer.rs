//! Qdrant's answer → what became of the items.

use crate::{
    client::Reply,
    reason,
    status::{all, common},
};
use serde::Deserialize;
use std::time::SystemTime;
use tidegate_core::sink::{Outcome, Verdict};

/// What follows these words quotes the point that cannot be read.
const MALFORMED: &str = "Format error in JSON body";

/// The request is larger than `service.max_request_size_mb`. Qdrant answers 400 then, not 413.
const TOO_LARGE: &str = "larger than allowed";

/// The request alone is more than a whole minute's worth of `write_rate_limit`.
const SPLIT: &str = "split your request";

/// There is no room left on Qdrant's disk.
const FULL: &str = "No space left on device";

/// What was asked, as far as it decides what an answer means.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub collection: &'a str,
    pub items: usize,
    pub operations: usize,
}

#[derive(Debug, Deserialize)]
struct Body {
    result: Vec<Applied>,
}

/// What became of one operation.
#[derive(Debug, Deserialize)]
struct Applied {
    status: String,
}

/// What became of the items. If the request failed, some operations may have been applied; all of
/// them can be repeated.
pub fn judge(reply: &Reply, asked: Asked<'_>, now: SystemTime) -> Outcome {
    match reply.status {
        // Qdrant's own way to say that an update took too long.
        408 => return Outcome::TimedOut,
        429 if reason(reply).contains(SPLIT) => return Outcome::TooLarge(reason(reply)),
        507 => return Outcome::Unavailable(reason(reply)),
        _ => {}
    }
    if let Some(outcome) = common(reply, "main", now) {
        return outcome;
    }
    match reply.status {
        200..=299 => applied(reply, asked),
        404 if is_missing(reply) => {
            let problem = format!(
                "collection `{}` does not exist: create it, or declare `create`",
                reason::clean(asked.collection)
            );
            all(asked.items, Verdict::Retry(problem))
        }
        404 => Outcome::Broken(format!("there is no Qdrant at this address: {}", reason(reply))),
        400 if reason(reply).contains(TOO_LARGE) => Outcome::TooLarge(reason(reply)),
        500..=599 if reason(reply).contains(FULL) => Outcome::Unavailable(reason(reply)),
        // Its state is not what the request needs; that may pass.
        409 | 412 | 423 | 500..=599 => all(asked.items, Verdict::Retry(reason(reply))),
        // A vector of the wrong length, a name that is not known: one bad point fails all.
        _ => Outcome::Refused(reason(reply)),
    }
}

/// Whether the answer is that the collection does not exist. Where no Qdrant is, 404 says less.
pub fn is_missing(reply: &Reply) -> bool {
    #[derive(Deserialize)]
    struct Body {
        #[serde(rename = "status")]
        _status: Status,
    }
    #[derive(Deserialize)]
    struct Status {
        #[serde(rename = "error")]
        _error: String,
    }
    reply.status == 404 && serde_json::from_slice::<Body>(&reply.body).is_ok()
}

/// Why it did not work, without anything of the points.
pub fn reason(reply: &Reply) -> String {
    let text = reason::of(reply.status, &reply.body);
    match text.find(MALFORMED) {
        Some(at) if !text.contains(TOO_LARGE) => text[..at + MALFORMED.len()].to_owned(),
        _ => text,
    }
}

/// Done is what is completed. `acknowledged` is kept by Qdrant, but may still fail.
fn applied(reply: &Reply, asked: Asked<'_>) -> Outcome {
    let result = match serde_json::from_slice::<Body>(&reply.body) {
        Ok(body) if body.result.len() == asked.operations => body.result,
        _ => {
            let problem = format!("it did not say what became of {} operations", asked.operations);
            return all(asked.items, Verdict::Retry(problem));
        }
    };
    match result.iter().map(|it| it.status.as_str()).find(|status| *status != "completed") {
        None => all(asked.items, Verdict::Done),
        Some("wait_timeout") => Outcome::TimedOut,
        Some(status) => Outcome::Unavailable(format!(
            "it took the points but has not written them yet: `{}`",
            reason::clean(status)
        )),
    }
}

#[cfg(test)]
mod tests;
