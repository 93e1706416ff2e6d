//! Lanes are shared out, renewed and given back.

use super::{Event, RelayError, Work};
use tidegate_core::{
    StoreError,
    outbox::{Epoch, GiveBack, Share, Shared},
};
use tokio::time::Instant;

impl Work<'_> {
    pub(super) fn share(&mut self) {
        let now = Instant::now();
        if now > *self.lanes.until.borrow() && !self.flow.lanes.is_empty() {
            tracing::warn!("lanes could not be renewed in time: they are given up");
            self.flow.lose_all();
            self.recall();
        }
        if self.flow.evict(now) {
            self.recall();
            self.settle_by(now);
        }
        if self.lanes.sharing || now < self.lanes.next {
            return;
        }
        self.lanes.sharing = true;
        let (store, plan) = (self.relay.store.clone(), &self.relay.plan);
        let request = Share {
            relay: self.relay.options.relay.clone(),
            epoch: self.flow.epoch().clone(),
            held: self.flow.leases(),
            routes: plan.routes.clone(),
            lease: self.relay.options.lease,
        };
        self.lanes.asked = now;
        self.lanes.next = now + self.relay.options.lease / 3;
        self.events.spawn(async move { Event::Shared(store.share_lanes(request).await) });
    }

    pub(super) fn shared(
        &mut self,
        answer: Result<Shared, StoreError>,
        now: Instant,
    ) -> Result<(), RelayError> {
        self.lanes.sharing = false;
        match answer {
            Ok(shared) => {
                // By this process's clock, the lease began when it was asked for, at the latest.
                self.lanes.until.send_replace(self.lanes.asked + self.relay.options.lease);
                self.lanes.relays = shared.relays;
                self.lanes.backoff.reset();
                if !shared.gained.is_empty() {
                    let gained = shared.gained.len();
                    match shared.relays {
                        1 => tracing::info!("{gained} lanes gained; no other relay is there"),
                        relays => {
                            tracing::info!("{gained} lanes gained; {relays} relays share them")
                        }
                    }
                    self.look.next = now;
                    (self.look.missed, self.look.nothing_left) = (true, false);
                }
                if shared.pending > 0 {
                    self.lanes.next = now;
                }
                if shared.epoch != *self.flow.epoch() && !self.flow.lanes.is_empty() {
                    tracing::warn!("the store went back in time: lanes are leased anew");
                    self.recall();
                    // Lanes that the store has renewed all the same are free when they are not asked for.
                    self.lanes.next = now;
                } else if !shared.lost.is_empty() {
                    self.recall();
                }
                self.flow.shared(shared, now);
                self.leave_lanes();
            }
            Err(error) if error.is_passing() => {
                let pause = self.lanes.backoff.pause();
                tracing::warn!("{error}; trying again in {pause:.0?}");
                self.lanes.next = now + pause;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The store went back in time when it was asked as in this epoch: lanes are leased anew at once, and read from
    /// where the store says. What is on its way may be delivered twice.
    pub(super) fn went_back(&mut self, epoch: &Epoch, error: &StoreError, now: Instant) {
        if self.flow.went_back(epoch) {
            tracing::warn!("{error}");
            self.recall();
        }
        self.look.next = now;
        self.lanes.next = now;
    }

    /// Groups that are not sent yet come back: some lanes are not this relay's any more, or should not be, or
    /// it ends.
    pub(super) fn recall(&self) {
        self.lanes.recalled.send_modify(|times| *times += 1);
    }

    /// Gives back what other relays should have.
    pub(super) fn leave_lanes(&mut self) {
        let lanes = self.flow.leave();
        if lanes.is_empty() {
            return;
        }
        let (store, relay) = (self.relay.store.clone(), self.relay.options.relay.clone());
        self.lanes.giving += 1;
        self.events.spawn(async move {
            let given = store.give_back_lanes(GiveBack { relay, lanes, ends: false }).await;
            if let Err(error) = given {
                tracing::warn!("lanes were not given back and will expire: {error}");
            }
            Event::GivenBack
        });
    }
}
