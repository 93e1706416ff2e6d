//! What a status means, whichever service sent it.

use crate::{client::Reply, reason, retry_after::retry_after};
use reqwest::header::LOCATION;
use std::time::{Duration, SystemTime};
use tidegate_core::sink::{Outcome, Verdict};

/// The outcome, unless it is the sink's own to judge.
pub fn common(reply: &Reply, connection: &str, now: SystemTime) -> Option<Outcome> {
    let reason = || reason::of(reply.status, &reply.body);
    Some(match reply.status {
        300..=399 => Outcome::Broken(redirected(reply)),
        // Some services say so when they are asked too often.
        403 if retry_after(&reply.headers, now).is_some() => throttled(reply, now),
        401 | 403 => Outcome::Broken(format!(
            "the credentials of connection `{connection}` are refused: {}",
            reason()
        )),
        // What is the same for every item: payment, a proxy's credentials, the form of all bodies.
        402 | 405 | 406 | 407 | 415 | 426 => Outcome::Broken(reason()),
        // The request did not arrive in whole, or too soon.
        408 | 425 => Outcome::Unavailable(reason()),
        504 => Outcome::TimedOut,
        413 => Outcome::TooLarge(reason()),
        429 => throttled(reply, now),
        503 | 529 if retry_after(&reply.headers, now).is_some() => throttled(reply, now),
        // What stands between says that the service itself is not there; 520 and up are
        // Cloudflare's.
        502 | 503 | 520..=530 => Outcome::Unavailable(reason()),
        _ => return None,
    })
}

/// What became of one item, by a status of its own.
pub fn verdict(
    status: u16,
    retry_after: Option<Duration>,
    reason: impl FnOnce() -> String,
) -> Verdict {
    match status {
        200..=299 => Verdict::Done,
        429 => Verdict::Throttled { retry_after },
        408 | 425 | 500..=599 => Verdict::Retry(reason()),
        _ => Verdict::Dead(reason()),
    }
}

/// The same verdict for all.
pub fn all(items: usize, verdict: Verdict) -> Outcome {
    Outcome::Answered(vec![verdict; items])
}

fn throttled(reply: &Reply, now: SystemTime) -> Outcome {
    let retry_after = retry_after(&reply.headers, now);
    Outcome::Throttled { retry_after, reason: reason::of(reply.status, &reply.body) }
}

fn redirected(reply: &Reply) -> String {
    let location = reply.headers.get(LOCATION).and_then(|value| value.to_str().ok());
    // What is behind the `?` may be a token.
    let location = location.and_then(|location| location.split(['?', '#']).next());
    let location = reason::clean(location.unwrap_or("elsewhere"));
    format!(
        "it answered {} to {location}: redirects are not followed, use that address",
        reply.status
    )
}
