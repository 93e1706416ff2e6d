//! What came back from a service, as far as the pace is concerned.

use std::time::Duration;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The service did what was asked.
    Succeeded,
    /// It refused for the sake of its pace.
    Throttled {
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// It did not answer in time.
    TimedOut,
    /// It failed for a reason that has nothing to do with the pace.
    Failed,
}

/// What a service tells beside its answer: ceilings, all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// So much should be in flight on this connection.
    pub parallelism: Option<u32>,
    /// So many requests are left …
    pub remaining: Option<Remaining>,
}

/// What is left of a quota that the service keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// So many requests …
    pub requests: u64,
    /// … until this has passed.
    pub reset: Duration,
}
