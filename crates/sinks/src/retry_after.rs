//! When a rejected client may come again.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// No system means more than this; beyond it, sums with a clock overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long the system wants to be left alone, if it says so.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    parse(headers.get(RETRY_AFTER)?.to_str().ok()?, now)
}

/// Seconds or an HTTP date; a date that has passed is no time at all.
pub fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = seconds(value).or_else(|| {
        let date = httpdate::parse_http_date(value).ok()?;
        Some(date.duration_since(now).unwrap_or_default())
    })?;
    Some(wait.min(LONGEST))
}

/// A whole number of seconds.
pub fn seconds(value: &str) -> Option<Duration> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than fit are still a long time.
    digits.then(|| Duration::from_secs(value.parse().unwrap_or(u64::MAX)).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_understood() {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2015 07:28:00 GMT").unwrap();
        let cases = [
            ("120", Some(Duration::from_secs(120))),
            (" 0 ", Some(Duration::ZERO)),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some(Duration::from_secs(30))),
            ("Wed, 21 Oct 2015 07:27:00 GMT", Some(Duration::ZERO)),
            ("Wednesday, 21-Oct-15 07:28:05 GMT", Some(Duration::from_secs(5))),
            ("99999999999999999999", Some(LONGEST)),
            ("Mon, 21 Oct 2915 07:28:30 GMT", Some(LONGEST)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ];
        for (value, expected) in cases {
            assert_eq!(parse(value, now), expected, "{value}");
        }
    }
}
