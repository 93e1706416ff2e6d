//! Acting: carrying out the runs of groups, with one verdict per run.
//!
//! [`Desk`] is where the loop lays down groups and picks up outcomes. [`Hands`] take groups from it:
//! threads in production, virtual time in the simulator.

mod acting;
mod desk;
mod one;
mod threads;
mod watch;

pub use acting::{Acting, Experience, Next, Outcome};
pub use desk::Desk;
pub use one::{Acted, Workbench};
pub use threads::Threads;

use async_trait::async_trait;
use std::sync::Arc;

/// Carries out what lies on the desk.
#[async_trait]
pub trait Hands: Send + Sync {
    /// How many runs are carried out at the same time.
    fn count(&self) -> usize;

    /// Takes groups from the desk and acts on them. Returns when the desk is closed and nothing on it
    /// is being acted on any more.
    async fn work(&self, desk: Arc<Desk>) -> Result<(), HungRuns>;
}

/// So many runs hang beyond their time-out that their threads cannot be replaced any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HungRuns(pub usize);

#[cfg(test)]
mod tests;
