//! What is done is settled, and what was settled long ago removed.

use super::{Event, RelayError, Work};
use crate::backoff::Backoff;
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    Kind, OutboxStore, StoreError,
    outbox::{Settled, Settlement},
};
use tokio::time::{Instant, sleep};

/// How often what was sent long ago is removed.
const RETAIN: Duration = Duration::from_secs(60);

impl Work<'_> {
    pub(super) fn settle_by(&mut self, at: Instant) {
        self.settle_at = Some(self.settle_at.map_or(at, |earlier| earlier.min(at)));
    }

    pub(super) fn settle(&mut self) {
        let now = Instant::now();
        let due = self.settle_at.is_some_and(|at| at <= now);
        if self.flow.is_settling() || !due {
            return;
        }
        self.settle_at = None;
        if let Some(settlement) = self.flow.settlement() {
            let store = self.relay.store.clone();
            self.events.spawn(async move { Event::Settled(settle(store, settlement).await) });
        }
    }

    pub(super) fn settled(
        &mut self,
        answer: Result<Settled, StoreError>,
        now: Instant,
    ) -> Result<(), RelayError> {
        let answer = match answer {
            Err(error) if error.kind() == Kind::WentBack => {
                if let Some(settlement) = self.flow.settling.take() {
                    self.went_back(&settlement.epoch, &error, now);
                }
                return Ok(());
            }
            answer => answer,
        };
        self.settle_failed = answer.is_err();
        self.look.missed |= self.flow.settled(answer?);
        self.look.nothing_left &= !self.look.missed;
        if self.look.missed {
            self.look.next = now;
        }
        self.leave_lanes();
        Ok(())
    }

    pub(super) fn retain(&mut self) {
        let now = Instant::now();
        let Some(keep) = self.relay.options.keep.filter(|_| now >= self.retain_at) else { return };
        self.retain_at = now + RETAIN;
        let store = self.relay.store.clone();
        self.events.spawn(async move {
            match purge(&*store, keep).await {
                Ok(0) => {}
                Ok(removed) => tracing::info!("{removed} sent messages removed"),
                Err(error) => tracing::warn!("sent messages were not removed: {error}"),
            }
            Event::Done
        });
    }
}

/// Settles. Tries until it is known what became of it.
pub(super) async fn settle(
    store: Arc<dyn OutboxStore>,
    settlement: Settlement,
) -> Result<Settled, StoreError> {
    let mut backoff = Backoff::new(settlement.lanes.len() as u64);
    loop {
        match store.settle_messages(settlement.clone()).await {
            Err(error) if error.is_passing() => {
                let pause = backoff.pause();
                tracing::warn!("{error}; trying again in {pause:.0?}");
                sleep(pause).await;
            }
            answer => return answer,
        }
    }
}

/// Removes messages that were sent, and published longer ago than `keep`. Returns how many.
pub async fn purge(store: &dyn OutboxStore, keep: Duration) -> Result<u64, StoreError> {
    let mut removed = 0;
    while let Some(sealed) = store.seal(keep).await? {
        match store.discard(sealed).await? {
            0 => break,
            discarded => removed += discarded,
        }
    }
    Ok(removed)
}
