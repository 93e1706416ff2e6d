//! What the service saw.

use serde::{Deserialize, Serialize};

/// What the service saw since it started, or since its counters were last set to zero.
///
/// Once nothing is in flight, `requests` is the sum of `accepted`, `throttled.total`, `failed`,
/// `unavailable`, `dropped`, `abandoned`, `refused` and `unauthorized`. Requests for tokens, counters
/// and health are not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Requests that arrived.
    pub requests: u64,
    /// Answered with success, records refused one by one included.
    pub accepted: u64,
    /// Answered 429.
    pub throttled: Throttled,
    /// Answered 500.
    pub failed: u64,
    /// Answered 503.
    pub unavailable: u64,
    /// Never answered.
    pub dropped: u64,
    /// The client went away while they were executed.
    pub abandoned: u64,
    /// Answered with another 4xx: not understood, too large, or refused for a record's sake.
    pub refused: u64,
    /// Answered 401.
    pub unauthorized: u64,
    /// Arrived on a credential inside a Retry-After that was sent to it before.
    pub inside_retry_after: u64,
    /// Distinct records stored. Deleting a record counts as one of its own.
    pub records: u64,
    /// Records stored that had been stored before.
    pub duplicates: u64,
    /// Records refused.
    pub refused_records: u64,
    /// Bytes in the bodies of all requests.
    pub bytes: u64,
    /// Requests being executed now.
    pub in_flight: u64,
    /// Most requests that were executed at the same time.
    pub max_in_flight: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Tokens issued.
    pub tokens: u64,
    /// Requests that sent the affinity cookie back.
    pub affinity_cookies: u64,
    /// When the first request arrived, since the start of the service.
    pub first_request_ms: Option<u64>,
    /// When the last answer was given, since the start of the service.
    pub last_answer_ms: Option<u64>,
    /// From the first request to the last answer.
    pub elapsed_seconds: f64,
}

/// Requests answered 429, by the limit that forbade them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// All of them.
    pub total: u64,
    /// Too many in flight.
    pub concurrency: u64,
    /// Too many in the last second.
    pub rate: u64,
    /// A budget was used up: one number per budget, in the order of the spec.
    pub budgets: Vec<u64>,
}
