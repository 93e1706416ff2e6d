//! Keeping leases while work goes on.

use crate::{backoff::Backoff, worker::Shared};
use std::convert::Infallible;
use tidegate_core::{Fence, Lease, source::Renewal};
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
        let refused = self.source.renew(request).await?;
        let lost = lost(refused, &leases, &self.desk.leases());
        if !lost.is_empty() {
            self.phases.late.add(lost.len() as u64);
            tracing::warn!("{} leases were lost to other workers", lost.len());
            self.desk.lose(&lost);
        }
        Ok(())
    }
}

/// Which of the leases that were asked for and refused are lost. One that was settled in part
/// meanwhile was asked for in vain: its refusal says nothing about what is left of it.
fn lost(refused: Vec<Fence>, asked: &[Lease], held: &[Lease]) -> Vec<Fence> {
    let mut lost = refused;
    lost.retain(|fence| asked.iter().any(|lease| lease.fence == *fence && held.contains(lease)));
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{BatchId, Items, RetryItem};

    fn retries(fence: i64, indexes: &[u64]) -> Lease {
        let item = |&index| RetryItem { index, attempts: 1 };
        let items = Items::Retries(indexes.iter().map(item).collect());
        Lease { batch: BatchId(1), fence: Fence(fence), items }
    }

    #[test]
    fn a_lease_that_was_settled_in_part_meanwhile_is_not_lost() {
        let asked = [retries(1, &[3, 4]), retries(2, &[5, 6]), retries(3, &[7])];
        let held = [retries(1, &[4]), retries(2, &[5, 6])];
        let refused = asked.iter().map(|lease| lease.fence).collect();
        assert_eq!(lost(refused, &asked, &held), [Fence(2)]);
    }
}
