//! What a worker can be told, with defaults that fit most.

use std::time::Duration;
use tidegate_core::{
    BatchId, WorkerId,
    limits::{MAX_LEASE, MIN_LEASE},
};

/// A lease with which nobody can work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitLease {
    /// It would be lost before it is renewed.
    #[error(
        "a lease of {0:?} is lost before it can be renewed, so that its work would be repeated for ever: \
         use {MIN_LEASE:?} or more"
    )]
    TooShort(Duration),
    /// After a crash, work would wait for too long.
    #[error(
        "a lease is at most one day: what a crashed process held waits until its lease has expired"
    )]
    TooLong(Duration),
}

impl UnfitLease {
    /// Refuses a lease that is too short or too long.
    pub fn check(lease: Duration) -> Result<(), Self> {
        match lease {
            short if short < MIN_LEASE => Err(Self::TooShort(short)),
            long if long > MAX_LEASE => Err(Self::TooLong(long)),
            _ => Ok(()),
        }
    }
}

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Names the worker in leases, for people.
    pub worker: WorkerId,
    /// How many runs are acted on at the same time.
    pub threads: usize,
    /// How long a lease lasts without renewal: how late a crash is noticed. From
    /// [`MIN_LEASE`] to [`MAX_LEASE`].
    pub lease: Duration,
    /// How much work a lease should hold; range lengths tune themselves to it.
    pub target: Duration,
    /// A fixed range length instead.
    pub range_length: Option<u64>,
    /// Ranges have a multiple of so many runs: what is acted on together should be leased together.
    pub grain: u64,
    /// Finished runs are settled when there are this many …
    pub flush_runs: u64,
    /// … or when the oldest of them has waited this long.
    pub flush_after: Duration,
    /// The longest pause between two looks for work.
    pub poll: Duration,
    /// How long runs in progress may go on after a stop was asked for.
    pub grace: Duration,
    /// How often phases are logged.
    pub report_every: Duration,
    /// Work on this batch only.
    pub only: Option<BatchId>,
    /// When to end.
    pub until: Until,
}

/// When a worker ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never: only when it is stopped.
    Stopped,
    /// When no batch that it may work on is running any more.
    Idle,
}

impl WorkerOptions {
    /// Defaults for a worker of this name.
    pub fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            lease: Duration::from_secs(30),
            target: Duration::from_secs(1),
            range_length: None,
            grain: 1,
            flush_runs: 100_000,
            flush_after: Duration::from_millis(250),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(20),
            report_every: Duration::from_secs(10),
            only: None,
            until: Until::Stopped,
        }
    }
}
