//! What a system tells about its pace in headers that come with any answer.

use crate::retry_after::seconds;
use reqwest::header::HeaderMap;
use std::time::Duration;
use tidegate_core::sink::Hint;

/// Dataverse's recommended degree of parallelism.
const PARALLELISM: &str = "x-ms-dop-hint";

// Not read, on purpose:
// - `x-ms-ratelimit-burst-remaining-xrm-requests` counts what is left on the web server that
//   happened to answer. Without the affinity cookie, that is any of an unknown number: the value
//   jumps, and bounds nothing. The declared budgets and `x-ms-dop-hint` serve instead.
// - `X-RateLimit-*`: whether its reset is a delay or a date differs from service to service.

/// What the headers tell.
pub fn hint(headers: &HeaderMap) -> Hint {
    let parallelism = text(headers, PARALLELISM).and_then(|value| value.parse().ok());
    let remaining = structured(headers).or_else(|| separate(headers));
    Hint { parallelism: parallelism.filter(|&wanted| wanted > 0), remaining }
}

/// `RateLimit-Remaining: 12` and `RateLimit-Reset: 30`.
fn separate(headers: &HeaderMap) -> Option<(u64, Duration)> {
    let remaining = text(headers, "ratelimit-remaining")?.parse().ok()?;
    Some((remaining, seconds(text(headers, "ratelimit-reset")?)?))
}

/// `RateLimit: "default";r=12;t=30`, or as older drafts have it `limit=100, remaining=12,
/// reset=30`. Of several policies the one with the least left counts.
fn structured(headers: &HeaderMap) -> Option<(u64, Duration)> {
    let value = text(headers, "ratelimit")?;
    if value.contains("remaining=") {
        return policy(value.split(','), ["remaining", "reset"]);
    }
    value.split(',').filter_map(|one| policy(one.split(';'), ["r", "t"])).min()
}

fn policy<'a>(
    parts: impl Iterator<Item = &'a str>,
    [remaining, reset]: [&str; 2],
) -> Option<(u64, Duration)> {
    let (mut left, mut until) = (None, None);
    for (name, value) in parts.filter_map(|part| part.trim().split_once('=')) {
        match name {
            name if name == remaining => left = value.parse().ok(),
            name if name == reset => until = seconds(value),
            _ => {}
        }
    }
    Some((left?, until?))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn hint_of(headers: &[(&'static str, &'static str)]) -> Hint {
        let pair =
            |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        hint(&headers.iter().map(pair).collect())
    }

    #[test]
    fn what_is_left_is_understood_in_all_spellings() {
        let left = Some((12, Duration::from_secs(30)));
        let cases: [(&[_], _); 8] = [
            (&[("ratelimit-remaining", "12"), ("ratelimit-reset", "30")], left),
            (&[("ratelimit", "\"default\";r=12;t=30")], left),
            (&[("ratelimit", "\"hour\";r=500;t=3000, \"burst\";r=12;t=30")], left),
            (&[("ratelimit", "limit=100, remaining=12, reset=30")], left),
            (&[("ratelimit-remaining", "12")], None),
            (&[("ratelimit-remaining", "-1"), ("ratelimit-reset", "30")], None),
            (&[("ratelimit", "\"default\";r=12")], None),
            (&[("x-ms-ratelimit-burst-remaining-xrm-requests", "7")], None),
        ];
        for (headers, expected) in cases {
            assert_eq!(hint_of(headers).remaining, expected, "{headers:?}");
        }
    }

    #[test]
    fn a_wish_for_no_requests_at_all_is_no_wish() {
        assert_eq!(hint_of(&[(PARALLELISM, "10")]).parallelism, Some(10));
        for value in ["0", "-3", "many", ""] {
            assert_eq!(hint_of(&[(PARALLELISM, value)]).parallelism, None, "{value}");
        }
    }
}
