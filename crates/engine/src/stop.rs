//! Asking a worker to stop.

use std::sync::Arc;
use tokio::sync::watch;

/// Asks for a clean stop. Clones are the same request.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Nothing asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether a stop was asked for.
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once a stop was asked for.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`: waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}
