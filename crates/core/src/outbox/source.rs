//! Where messages come from: the seam between a relay and a store.

use super::{
    Claim, ClaimRequest, GiveBack, OutboxCapabilities, Settled, Settlement, Share, Shared,
    TroubleNote,
};
use crate::StoreError;
use async_trait::async_trait;

/// Hands out lanes and takes back what became of their messages. The store's clock decides when a
/// lease expires and when a message is due, if it has one. A store without ids that grow implements
/// [`StateOutbox`](super::StateOutbox) instead.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// What this outbox can do.
    fn outbox_capabilities(&self) -> OutboxCapabilities;

    /// Says that a relay lives, and gives it free lanes up to its even share: those of nobody, of relays that
    /// live no longer, and its own of which it does not know: all of its own if they were leased in another epoch.
    /// Afterwards no other relay has one of its lanes. Of every key that waits in a lane that was gained, the first message is due or holds the rest on purpose. On
    /// an error lanes may have been leased of which it does not know: it gets them the next time.
    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError>;

    /// Reads messages. Changes nothing. Everything up to a reading's `read_to` is decided: no message
    /// that commits later has a lower id. Fails with [`Kind::WentBack`](crate::Kind::WentBack) if the request is from
    /// another epoch than the store's, and with [`Kind::IdsRestarted`](crate::Kind::IdsRestarted) if new messages may
    /// have ids that were read before.
    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError>;

    /// Writes progress and what was set aside, in one transaction. Afterwards it is durable for all
    /// lanes but those that were lost. Of every key that it touched, the first message that waits is
    /// due, unless one before it holds the key. Sent again, it changes nothing. Fails with
    /// [`Kind::WentBack`](crate::Kind::WentBack), and changes nothing, if the store is not where the relay left it: it
    /// is in another epoch, or does not have the settlement before this one. On any other error the outcome is
    /// unknown.
    async fn settle_messages(&self, settlement: Settlement) -> Result<Settled, StoreError>;

    /// Gives lanes back before their time. Afterwards anybody can have them at once, their fences prove
    /// nothing any more, and a relay that ends is not counted. Lanes that were lost are passed over.
    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError>;

    /// Notes which sinks take nothing from a relay, for people. Afterwards these are known, and no others of
    /// this relay, each since as long as it says. On an error it is as it was, or as asked.
    async fn note_sinks(&self, note: TroubleNote) -> Result<(), StoreError>;

    /// Returns when there may be new messages. Only a hint: it may come late, in vain or never.
    async fn published(&self);
}
