//! Hands that deliver to a sink, at the pace that it can bear.
//!
//! One task per lease: it takes the next items, waits at the gate, sends them, and records one
//! verdict each. What is sent again, and when, is decided in `send.rs`; the sink only sends.

mod breaker;
mod clock;
mod send;
mod task;

use crate::act::{Desk, Hands, HandsError};
use async_trait::async_trait;
use breaker::Breaker;
pub use clock::WallClock;
use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tidegate_core::Sink;
use tidegate_pacer::{Gate, Size};
use tokio::task::{JoinError, JoinSet};

/// Most groups that are leased at the same time: bounds the memory, whatever the pacer allows.
const MOST_GROUPS: u32 = 1_024;

/// What is to be delivered: the items of a batch, by index.
pub trait Items: Send + Sync {
    /// Item `index`, or why it cannot be delivered.
    fn read(&self, indexes: &[u64]) -> Result<Vec<Readable>, String>;
}

/// An item with its payload, or why it has none.
pub struct Readable {
    /// The same for every attempt.
    pub id: String,
    /// One JSON object; otherwise the item is dead for this reason.
    pub payload: Result<String, String>,
}

/// Delivers the items of batches to a sink.
pub struct Deliverer {
    route: Arc<Route>,
}

/// All that a task needs to send.
pub(crate) struct Route {
    sink: Arc<dyn Sink>,
    items: Arc<dyn Items>,
    gate: Gate,
    clock: WallClock,
    size: Mutex<Size>,
    breaker: Mutex<Breaker>,
    /// Who waits for the sink.
    line: tokio::sync::Mutex<()>,
    meter: Arc<Meter>,
}

/// What was sent so far, for people.
#[derive(Debug, Default)]
pub struct Meter {
    requests: AtomicU64,
    answers: AtomicU64,
    throttled: AtomicU64,
    unavailable: AtomicU64,
    timed_out: AtomicU64,
}

/// What a [`Meter`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sent {
    /// Requests that were sent.
    pub requests: u64,
    /// Those that the sink throttled.
    pub throttled: u64,
    /// Those that found no sink.
    pub unavailable: u64,
    /// Those without an answer in time.
    pub timed_out: u64,
}

impl Meter {
    /// What was sent so far.
    pub fn sent(&self) -> Sent {
        Sent {
            requests: self.requests.load(Relaxed),
            throttled: self.throttled.load(Relaxed),
            unavailable: self.unavailable.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
        }
    }
}

impl Deliverer {
    /// Delivers `items` to `sink`, at most `group` of them in one request, as the gate allows.
    pub fn new(
        sink: Arc<dyn Sink>,
        items: Arc<dyn Items>,
        group: usize,
        gate: Gate,
        clock: WallClock,
    ) -> Self {
        let most = sink.capabilities().max_group;
        let size = Size::new(group.min(most));
        let route = Route {
            sink,
            items,
            gate,
            clock,
            size: Mutex::new(size),
            breaker: Mutex::default(),
            line: tokio::sync::Mutex::default(),
            meter: Arc::default(),
        };
        Self { route: Arc::new(route) }
    }

    /// Why the sink is not there, and how long until the next try; `None` while it is.
    pub fn absence(&self) -> Option<(String, Duration)> {
        self.route.breaker().absence(self.route.clock.time())
    }

    /// What was sent so far.
    pub fn meter(&self) -> Arc<Meter> {
        self.route.meter.clone()
    }
}

#[async_trait]
impl Hands for Deliverer {
    fn count(&self) -> usize {
        let limit = self.route.gate.limit(self.route.clock.time());
        limit.clamp(1, MOST_GROUPS) as usize
    }

    async fn work(&self, desk: Arc<Desk>) -> Result<(), HandsError> {
        let mut tasks: JoinSet<Result<(), HandsError>> = JoinSet::new();
        let mut ended = Ok(());
        loop {
            tokio::select! {
                biased;
                Some(task) = tasks.join_next(), if !tasks.is_empty() => {
                    ended = ended.and(outcome(task));
                    if ended.is_err() {
                        desk.close(); // what is in flight is still finished, and recorded
                    }
                }
                acting = desk.next() => match acting {
                    Some(acting) => {
                        tasks.spawn(task::deliver(self.route.clone(), desk.clone(), acting));
                    }
                    None => break,
                },
            }
        }
        while let Some(task) = tasks.join_next().await {
            ended = ended.and(outcome(task));
        }
        ended
    }
}

fn outcome(task: Result<Result<(), HandsError>, JoinError>) -> Result<(), HandsError> {
    task.unwrap_or_else(|panic| Err(HandsError::Sink(format!("a task ended: {panic}"))))
}

impl Route {
    fn size(&self) -> MutexGuard<'_, Size> {
        self.size.lock().expect("nothing panics while it holds the lock")
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().expect("nothing panics while it holds the lock")
    }
}

#[cfg(test)]
mod tests;
