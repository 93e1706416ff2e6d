//! When a rejected client may come again, as it is told.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the header `Retry-After` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    Seconds(u64),
    Date(SystemTime),
}

impl RetryAfter {
    /// Not before `wait` has passed: both forms know whole seconds only.
    pub fn new(wait: Duration, as_date: bool, wall: SystemTime) -> Self {
        if as_date {
            let since_epoch = wall.duration_since(UNIX_EPOCH).unwrap_or_default() + wait;
            Self::Date(UNIX_EPOCH + Duration::from_secs(round_up(since_epoch)))
        } else {
            Self::Seconds(round_up(wait).max(1))
        }
    }

    /// How long the client is told to wait, from `wall` on.
    pub fn length(self, wall: SystemTime) -> Duration {
        match self {
            Self::Seconds(seconds) => Duration::from_secs(seconds),
            Self::Date(date) => date.duration_since(wall).unwrap_or_default(),
        }
    }

    /// The header's value.
    pub fn header(self) -> String {
        match self {
            Self::Seconds(seconds) => seconds.to_string(),
            Self::Date(date) => httpdate::fmt_http_date(date),
        }
    }
}

/// Whole seconds, not fewer than `duration`.
pub fn round_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
