//! Outboxes that are read by state: what is still pending, in the best order that the store can express.
//!
//! A log has ids that grow, and a relay remembers one cursor for each lane. Tables of others have no such ids, and
//! DynamoDB cannot have them. There a message is pending until it is marked. A store that is read this way implements
//! [`StateOutbox`], and is an [`Outbox`] by that: positions are given out here, when messages are read, and what was
//! read and is not marked yet is remembered here, for as long as a lease lasts.

mod book;
mod read;

pub use book::{AsideBook, AsideRow};
pub use read::ReadMessages;

use super::{
    Claim, ClaimRequest, GiveBack, Lane, LaneLease, Message, Outbox, OutboxCapabilities, Position,
    SetAside, Settled, Settlement, Share, Shared, TroubleNote,
};
use crate::{StoreError, outbox::Epoch};
use async_trait::async_trait;
use std::{collections::HashSet, sync::Arc, time::Duration};

/// How a store finds a pending message again: its own name for it, which no other pending message has.
pub type Row = Arc<str>;

/// Hands out lanes, reads what is pending, and marks what became of it.
#[async_trait]
pub trait StateOutbox: Send + Sync {
    /// What this store can do.
    fn state_capabilities(&self) -> OutboxCapabilities;

    /// What was read and is not marked yet. A store only keeps it.
    fn read_messages(&self) -> &ReadMessages;

    /// As [`Outbox::share_lanes`]. The cursor of a lane that was gained is a position that is not before any that is
    /// stored for the lane; it has no lags.
    async fn share_state(&self, request: Share) -> Result<Shared, StoreError>;

    /// Reads messages that are pending and not known to the caller, and those that were set aside and are due. Changes
    /// nothing. Of each key, messages come in the order that the capabilities promise.
    ///
    /// A message that is not due yet is best left where it is: what is set aside keeps its position, and would go before
    /// earlier ones of its key that are read again, by whoever has the lane next.
    async fn read_pending(&self, request: PendingRequest) -> Result<Pending, StoreError>;

    /// Marks messages as done, and writes what was set aside. Afterwards it is durable for all lanes but those that
    /// were lost. Sent again, it changes nothing that was done.
    ///
    /// It may be carried out in several parts, of which any number is done after an error or a crash. Then their order
    /// matters: of each lane first what is done, then what is set aside, both as they are listed. In another order, what
    /// comes first of a key would be delivered again, or for the first time, after what follows it.
    async fn mark(&self, marks: Marks) -> Result<Settled, StoreError>;

    /// As [`Outbox::give_back_lanes`].
    async fn give_back_state(&self, request: GiveBack) -> Result<(), StoreError>;

    /// As [`Outbox::note_sinks`].
    async fn note_troubled(&self, note: TroubleNote) -> Result<(), StoreError>;
}

/// Asks for messages.
#[derive(Clone, Debug, Default)]
pub struct PendingRequest {
    /// What a relay wants.
    pub claim: ClaimRequest,
    /// Pending messages that it has already.
    pub known: HashSet<Row>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// One for each reader, in their order.
    pub readings: Vec<PendingReading>,
    /// Messages that were set aside and are due: see [`Claim::due`].
    pub due: Vec<Message>,
    /// When the next of them is due, or when a message that was found is old enough.
    pub next_due: Option<Duration>,
    /// What was set aside before and is not pending any more: somebody else has marked it.
    pub gone: Vec<(Lane, Position)>,
    /// What was set aside before and must be so for another reason now.
    pub set_aside: Vec<SetAside>,
}

/// What one reader got.
#[derive(Clone, Debug, Default)]
pub struct PendingReading {
    /// In the order in which they are delivered. Their positions are given later, and ids as well to those whose id is
    /// that of the position that they have: on such a store, messages are known by their positions.
    pub messages: Vec<(Row, Message)>,
    /// Whether there may be more at once.
    pub more: bool,
}

/// What became of messages.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// The epoch in which the lanes were leased.
    pub epoch: Epoch,
    /// See [`Settlement::number`].
    pub number: u64,
    /// The lanes that these are of, and the right to them.
    pub lanes: Vec<LaneLease>,
    /// The last position that was given out.
    pub last: Position,
    /// Pending messages that are done. Of each key in its order.
    pub done: Vec<(Lane, Row)>,
    /// Messages that were set aside before and are done.
    pub aside_done: Vec<(Lane, Position)>,
    /// Messages that are not simply done, with their names if they were pending until now. Of each key in its order.
    pub aside: Vec<(Option<Row>, SetAside)>,
}

#[async_trait]
impl<T: StateOutbox + ?Sized> Outbox for T {
    fn outbox_capabilities(&self) -> OutboxCapabilities {
        self.state_capabilities()
    }

    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError> {
        let held = request.held.clone();
        let mut shared = self.share_state(request).await?;
        self.read_messages().shared(&held, &mut shared);
        Ok(shared)
    }

    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        let (known, leases) = self.read_messages().known();
        let readers = request.readers.clone();
        let pending = self.read_pending(PendingRequest { claim: request, known }).await?;
        Ok(self.read_messages().take_in(pending, &readers, &leases))
    }

    async fn settle_messages(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        let marks = self.read_messages().marks(&settlement);
        let settled = self.mark(marks).await?;
        self.read_messages().marked(&settlement, &settled);
        Ok(settled)
    }

    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError> {
        let lanes: Vec<Lane> = request.lanes.iter().map(|lease| lease.lane).collect();
        self.give_back_state(request).await?;
        self.read_messages().forget(&lanes);
        Ok(())
    }

    async fn note_sinks(&self, note: TroubleNote) -> Result<(), StoreError> {
        self.note_troubled(note).await
    }

    async fn published(&self) {
        std::future::pending().await
    }
}
