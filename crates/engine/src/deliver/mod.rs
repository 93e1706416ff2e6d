//! Hands that deliver to a sink, at the pace that it can bear.
//!
//! One task per lease: it takes the next items, waits at the gate, sends them, and records one
//! verdict each. What is sent again, and when, is decided in `send.rs`; the sink only sends. Relays
//! send in the same way.

mod breaker;
mod channel;
mod clock;
mod destinations;
mod send;
mod task;
mod trouble;
mod waits;

use crate::act::{Desk, Hands, HandsError};
use async_trait::async_trait;
pub(crate) use channel::{Channel, Manner};
pub use channel::{Meter, Sent};
pub use clock::WallClock;
pub(crate) use destinations::Destinations;
pub(crate) use send::{Scene, Verdicts, send};
use std::{sync::Arc, time::Duration};
use tidegate_core::Sink;
use tidegate_pacer::Gate;
use tokio::task::{JoinError, JoinSet};
pub use trouble::{STALLED_AFTER, Trouble, TroubleKind};

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

/// All that a task needs.
pub(crate) struct Route {
    items: Arc<dyn Items>,
    channel: Channel,
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
        let channel = Channel::new(sink, group, gate, clock, Manner::Load);
        Self { route: Arc::new(Route { items, channel }) }
    }

    /// Why the sink is not there, and how long until the next try; `None` while it is.
    pub fn absence(&self) -> Option<(String, Duration)> {
        self.route.channel.absence()
    }

    /// Why nothing is taken although no attempt is used up, and for how long nothing was.
    pub fn stall(&self) -> Option<(String, Duration)> {
        self.route.channel.stall()
    }

    /// What was sent so far.
    pub fn meter(&self) -> Arc<Meter> {
        self.route.channel.meter.clone()
    }
}

#[async_trait]
impl Hands for Deliverer {
    fn count(&self) -> usize {
        self.route.channel.limit()
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

#[cfg(test)]
mod tests;
