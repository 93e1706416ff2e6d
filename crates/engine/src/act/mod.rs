//! Acting: carrying out the runs of groups, with one verdict per run.
//!
//! [`Desk`] is where the loop lays down groups and picks up outcomes. [`Hands`] take groups from it:
//! threads in production, virtual time in the simulator.

mod acting;
mod desk;
mod one;
mod threads;
mod watch;

pub use acting::{Acting, Experience, Held, Next, Outcome};
pub use desk::Desk;
pub use one::{Acted, Workbench, Yield};
pub use threads::Threads;

use async_trait::async_trait;
use std::sync::Arc;

/// Carries out what lies on the desk.
#[async_trait]
pub trait Hands: Send + Sync {
    /// How many groups are acted on at the same time. It may change: leases are claimed for as many.
    fn count(&self) -> usize;

    /// Takes groups from the desk and acts on them. Returns when the desk is closed and nothing on it
    /// is being acted on any more.
    async fn work(&self, desk: Arc<Desk>) -> Result<(), HandsError>;
}

/// Why hands cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HandsError {
    /// Their threads cannot be replaced any more.
    #[error("{0} runs hang beyond their time-out and cannot be ended: restart the worker")]
    Hung(usize),
    /// The system gives no more threads.
    #[error("cannot start a thread: {0}; use fewer (--threads), or raise the system's limit")]
    NoThread(std::io::Error),
    /// What they deliver to cannot be used, or what they deliver cannot be read.
    #[error("{0}")]
    Sink(String),
}

#[cfg(test)]
mod tests;
