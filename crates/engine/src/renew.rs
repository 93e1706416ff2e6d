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
        let request = Renewal { leases: leases.clone(), lease: self.options.lease };
        let mut lost = self.source.renew(request).await?;
        // What was settled in part meanwhile was asked for in vain: that says nothing.
        let held = self.desk.leases();
        let unchanged =
            |fence| leases.iter().any(|lease| lease.fence == fence && held.contains(lease));
        lost.retain(|fence| unchanged(*fence));
        if !lost.is_empty() {
            self.phases.late.add(lost.len() as u64);
            tracing::warn!("{} leases were lost to other workers", lost.len());
            self.desk.lose(&lost);
        }
        Ok(())
    }
}
