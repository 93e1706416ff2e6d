//! Keeping leases while work goes on.

use crate::{act::Held, backoff::Backoff, worker::Shared};
use std::convert::Infallible;
use tidegate_core::{Fence, Lease, StoreError, source::Renewal};
use tokio::time::{sleep, timeout};

impl Shared {
    /// Renews all leases well before they expire, for ever.
    pub async fn renew_leases(&self) -> Infallible {
        let mut backoff = Backoff::new(self.options.lease.as_nanos() as u64);
        let regular = self.options.lease / 3;
        let mut pause = regular;
        loop {
            sleep(pause).await;
            // A call that takes longer is sent again while there is time.
            pause = match timeout(regular, self.renew_once()).await {
                Ok(Ok(())) => {
                    backoff.reset();
                    regular
                }
                Ok(Err(error)) => {
                    self.phases.store_errors.add(1);
                    tracing::warn!("{error}; leases may be lost");
                    backoff.pause()
                }
                Err(_) => {
                    self.phases.store_errors.add(1);
                    tracing::warn!("renewing takes longer than {regular:.0?}; leases may be lost");
                    backoff.pause()
                }
            };
        }
    }

    async fn renew_once(&self) -> Result<(), StoreError> {
        let asked = self.desk.leases();
        if asked.is_empty() {
            return Ok(());
        }
        let leases = asked.iter().map(|held| held.lease.clone()).collect();
        let request = Renewal { leases, lease: self.options.lease };
        let refused = self.source.renew(request).await?;
        let lost = lost(refused, &asked, &self.desk.leases());
        if !lost.is_empty() {
            self.phases.late.add(lost.len() as u64);
            tracing::warn!("{} leases were lost to other workers", lost.len());
            self.lose(&lost).await;
        }
        Ok(())
    }

    /// Clears lost leases away, and tells the store that they were not lost by the end of this
    /// process: their runs are not suspects. If the store does not hear it, they may be.
    pub(crate) async fn lose(&self, lost: &[Fence]) {
        let held = self.desk.leases().into_iter().map(|held| held.lease);
        let leases: Vec<Lease> = held.filter(|lease| lost.contains(&lease.fence)).collect();
        self.desk.lose(lost);
        if leases.is_empty() {
            return;
        }
        match timeout(self.options.lease / 3, self.source.give_back(leases)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("lost leases were not given back: {error}"),
            Err(_) => tracing::debug!("lost leases were not given back in time"),
        }
    }
}

/// Which of the leases that were asked for and refused are lost. What is settled cannot be renewed:
/// if a part of a lease was being settled, its refusal says nothing about the rest, and settling
/// finds out.
fn lost(refused: Vec<Fence>, asked: &[Held], held: &[Held]) -> Vec<Fence> {
    let at_rest = |asked: &&Held| !asked.settling && held.contains(asked);
    let certain: Vec<Fence> = asked.iter().filter(at_rest).map(|held| held.lease.fence).collect();
    refused.into_iter().filter(|fence| certain.contains(fence)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{BatchId, Items, RetryItem};

    fn retries(fence: i64, indexes: &[u64], settling: bool) -> Held {
        let item = |&index| RetryItem { index, attempts: 1 };
        let items = Items::Retries(indexes.iter().map(item).collect());
        let lease = Lease { batch: BatchId(1), fence: Fence(fence), items, suspect: false };
        Held { lease, settling }
    }

    #[test]
    fn a_lease_that_is_settled_in_part_meanwhile_is_not_lost() {
        let at_rest = |fence, indexes| retries(fence, indexes, false);
        let being_settled = |fence, indexes| retries(fence, indexes, true);
        let asked = [
            at_rest(1, &[3, 4]),
            at_rest(2, &[5, 6]),
            at_rest(3, &[7]),
            at_rest(4, &[8]),
            being_settled(5, &[9]),
        ];
        let held =
            [at_rest(1, &[4]), at_rest(2, &[5, 6]), being_settled(4, &[8]), being_settled(5, &[9])];
        let refused = asked.iter().map(|held| held.lease.fence).collect();
        assert_eq!(lost(refused, &asked, &held), [Fence(2)]);
    }
}
