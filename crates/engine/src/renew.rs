//! Keeping leases while work goes on.

use crate::{backoff::Backoff, worker::Shared};
use std::convert::Infallible;
use tidegate_core::source::Renewal;
use tokio::time::sleep;

impl Shared {
    /// Renews all leases well before they expire, for ever.
    pub async fn renew_leases(&self) -> Infallible {
        let mut backoff = Backoff::new(self.options.lease.as_nanos() as u64);
        let regular = self.options.lease / 3;
        let mut pause = regular;
        loop {
            sleep(pause).await;
            pause = match self.renew_once().await {
                Ok(()) => {
                    backoff.reset();
                    regular
                }
                Err(error) => {
                    self.phases.store_errors.add(1);
                    tracing::warn!("{error}; leases may be lost");
                    backoff.pause()
                }
            };
        }
    }

    async fn renew_once(&self) -> Result<(), tidegate_core::StoreError> {
        let leases = self.desk.leases();
        if leases.is_empty() {
            return Ok(());
        }
        let request = Renewal { leases, lease: self.options.lease };
        let lost = self.source.renew(request).await?;
        // A lease that was settled to its end meanwhile is not held any more and not lost either.
        let still_held = self.desk.leases();
        let lost: Vec<_> = lost
            .into_iter()
            .filter(|fence| still_held.iter().any(|lease| lease.fence == *fence))
            .collect();
        if !lost.is_empty() {
            self.phases.late.add(lost.len() as u64);
            tracing::warn!("{} leases were lost to other workers", lost.len());
            self.desk.lose(&lost);
        }
        Ok(())
    }
}
