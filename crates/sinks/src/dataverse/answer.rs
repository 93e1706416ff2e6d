//! Dataverse's answer → what became of the records.

use super::{batch, request::Message};
use crate::{
    client::Reply,
    reason,
    retry_after::{parse, retry_after},
    status::{all, common, verdict},
};
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use std::time::{Duration, SystemTime};
use tidegate_core::sink::{Outcome, Verdict};

/// The record is not there.
const NO_SUCH_RECORD: &str = "0x80040217";

/// The database was in trouble: a deadlock, a time-out.
const DATABASE: [&str; 2] = ["0x80044150", "0x80044151"];

/// The service protection limits, by the codes of their errors.
const LIMITS: [(&str, &str); 3] = [
    ("0x80072322", "too many requests in the window"),
    ("0x80072321", "too much execution time in the window"),
    ("0x80072326", "too many concurrent requests"),
];

/// What was asked, as far as it decides what an answer means.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub user: &'a str,
    pub items: usize,
    pub message: Message,
}

#[derive(Debug, Default, Deserialize)]
struct Body {
    #[serde(default)]
    error: Error,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Error {
    code: String,
    message: String,
    /// JSON within JSON.
    #[serde(rename = "@Microsoft.PowerApps.CDS.ErrorDetails.Plugin.BulkApiErrorDetails")]
    details: Option<String>,
}

/// What became of one record of an elastic table.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Detail {
    request_index: usize,
    status_code: u16,
}

/// What became of the records.
pub fn judge(reply: &Reply, asked: Asked<'_>, now: SystemTime) -> Outcome {
    let error = serde_json::from_slice::<Body>(&reply.body).unwrap_or_default().error;
    match common(reply, asked.user, now) {
        Some(Outcome::Throttled { retry_after, reason }) => {
            return Outcome::Throttled { retry_after, reason: error.limit(reason) };
        }
        Some(outcome) => return outcome,
        None => {}
    }
    let reason = || error.reason(reply);
    match reply.status {
        200..=299 if asked.message == Message::DeleteEach => each(reply, asked.items, now),
        200..=299 => all(asked.items, Verdict::Done),
        // The details may be in what is missing.
        _ if reply.cut => all(asked.items, Verdict::Retry(reason())),
        _ if error.details.is_some() => error.partly(asked, reply, now),
        _ if DATABASE.contains(&error.code.as_str()) => all(asked.items, Verdict::Retry(reason())),
        404 if error.code != NO_SUCH_RECORD => {
            Outcome::Broken(format!("check `url` and `table`: {}", reason()))
        }
        410 => Outcome::Broken(reason()),
        501 => Outcome::Broken(format!("check `table` and `elastic`: {}", reason())),
        // It failed at these records; with others it may not.
        500..=599 => all(asked.items, Verdict::Retry(reason())),
        // In a standard table, one bad record fails all.
        _ => Outcome::Refused(reason()),
    }
}

impl Error {
    /// Which limit was exceeded.
    fn limit(&self, otherwise: String) -> String {
        let limit = LIMITS.iter().find(|(code, _)| self.code.eq_ignore_ascii_case(code));
        match limit {
            Some((_, limit)) => format!("{limit}: {}", reason::clean(&self.message)),
            None => otherwise,
        }
    }

    fn reason(&self, reply: &Reply) -> String {
        if self.code.is_empty() {
            return reason::of(reply.status, &reply.body);
        }
        let text = format!("{} ({})", self.message, self.code);
        reason::of(reply.status, text.as_bytes())
    }

    /// Elastic tables store what they can, and tell about each record.
    fn partly(&self, asked: Asked<'_>, reply: &Reply, now: SystemTime) -> Outcome {
        let wait = retry_after(&reply.headers, now);
        let details = self.details.as_deref().unwrap_or_default();
        let Ok(details) = serde_json::from_str::<Vec<Detail>>(details) else {
            let problem = format!("its details cannot be read: {}", self.reason(reply));
            return all(asked.items, Verdict::Retry(problem));
        };
        // What is not mentioned may have been stored or not.
        let unknown = Verdict::Retry("it did not say what became of this record".to_owned());
        let mut verdicts = vec![unknown; asked.items];
        for detail in details {
            if let Some(place) = verdicts.get_mut(detail.request_index) {
                *place = detail.verdict(asked.message, wait, &self.message);
            }
        }
        Outcome::Answered(verdicts)
    }
}

impl Detail {
    fn verdict(&self, message: Message, wait: Option<Duration>, text: &str) -> Verdict {
        match (self.status_code, message) {
            // Gone is what was asked for: an attempt whose answer was lost may have done it.
            (404, Message::DeleteMultiple) => Verdict::Done,
            (status, _) => verdict(status, wait, || reason::of(status, text.as_bytes())),
        }
    }
}

/// The answers in a batch's answer.
fn each(reply: &Reply, items: usize, now: SystemTime) -> Outcome {
    let wait = retry_after(&reply.headers, now);
    let kind = reply.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let body = std::str::from_utf8(&reply.body).unwrap_or_default();
    match batch::parts(kind.unwrap_or_default(), body) {
        Some(parts) if parts.len() == items => {
            Outcome::Answered(parts.iter().map(|part| deleted(part, wait, now)).collect())
        }
        parts => {
            let count = parts.map_or("no".to_owned(), |parts| parts.len().to_string());
            let problem = format!("it gave {count} answers to {items} deletions");
            all(items, Verdict::Retry(problem))
        }
    }
}

fn deleted(part: &batch::Part<'_>, wait: Option<Duration>, now: SystemTime) -> Verdict {
    let wait = part.retry_after.and_then(|value| parse(value, now)).or(wait);
    let error = serde_json::from_str::<Body>(part.body).unwrap_or_default().error;
    if part.status == 404 && error.code == NO_SUCH_RECORD {
        // As above. Another 404 is about the table, and nothing was done.
        return Verdict::Done;
    }
    verdict(part.status, wait, || reason::of(part.status, part.body.as_bytes()))
}

#[cfg(test)]
mod tests;
