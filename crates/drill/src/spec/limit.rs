//! The limits that can be declared.

use serde::Deserialize;
use std::time::Duration;

/// More requests in flight than this are rejected at once.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concurrency {
    /// Most requests in flight.
    pub limit: usize,
}

/// More requests than this in the last second are rejected; rejected ones count, too.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Most requests in any one second.
    pub per_second: u64,
}

/// What may be used in a sliding window. Rejected requests use nothing.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What is counted.
    pub kind: BudgetKind,
    /// How much of it a window allows: requests, or seconds.
    pub limit: f64,
    /// How long a window is.
    #[serde(with = "super::seconds")]
    pub window: Duration,
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Requests, when they arrive.
    Requests,
    /// Execution time, when a request ends: the rejection comes late.
    ExecutionSeconds,
}

/// Where execution times begin to grow exponentially.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    /// Requests in flight that cost nothing extra.
    pub start: usize,
    /// The execution time is multiplied by this for each request in flight beyond.
    pub exponent: f64,
}

/// What the service says it wants.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hint {
    /// Recommended requests in flight.
    pub parallelism: u32,
}
