//! Where work comes from: the seam between the engine and a store.

use crate::{
    BatchId, BatchState, Lease, StoreError,
    claim::{Claim, ClaimRequest},
    lease::Fence,
    settle::{Settled, Settlement},
};
use async_trait::async_trait;
use std::time::Duration;

/// Hands out leases and takes back what became of them. The store's clock decides when a lease
/// expires and when a retry is due.
#[async_trait]
pub trait Source: Send + Sync {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// Leases work. Afterwards the returned leases belong to the worker until they expire; nobody
    /// else gets the same runs before. What was lost with its workers again and again is leased to one
    /// worker at a time, and is given up in the end: see [`suspect`](crate::suspect). On an error
    /// leases may have been taken that nobody knows of: they expire.
    async fn claim(&self, request: ClaimRequest) -> Result<Claim, StoreError>;

    /// Extends leases. Afterwards those not returned last for `request.lease` from now; those
    /// returned are lost.
    async fn renew(&self, request: Renewal) -> Result<Vec<Fence>, StoreError>;

    /// Writes results, failures, aggregates and progress in one transaction. Afterwards either all
    /// of it is durable, or nothing was changed because some leases were lost, or because the totals
    /// do not build on what is stored. A settlement that was applied before, and is sent again because
    /// its outcome was unknown, changes nothing and is `Applied`. On an error the outcome is unknown.
    async fn settle(&self, settlement: Settlement) -> Result<Settled, StoreError>;

    /// Gives leases back before their time. Afterwards anybody can claim them at once; the runs in
    /// them have used up no attempt. Of a lease that was lost already it says that its worker is
    /// alive: the loss does not count against its runs.
    async fn give_back(&self, leases: Vec<Lease>) -> Result<(), StoreError>;

    /// Closes those of the batches that have nothing outstanding. Afterwards each of them has its
    /// final state and its aggregates, written in one transaction. Returns the ones that this call
    /// closed: for every batch, exactly one call says so.
    async fn finalize(&self, batches: Vec<BatchId>) -> Result<Vec<Finalized>, StoreError>;

    /// Returns when there may be new work. Only a hint: it may come late, in vain or never.
    async fn wake(&self);
}

/// What a store can do, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// For messages: `memory`, `sqlite`, `postgres`.
    pub name: &'static str,
    /// Settled work survives the end of the process.
    pub durable: bool,
    /// Several processes can share it.
    pub shared: bool,
}

/// Asks for more time.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// What is still being worked on.
    pub leases: Vec<Lease>,
    /// How much longer, from now.
    pub lease: Duration,
}

/// A batch that was just closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finalized {
    /// Which batch.
    pub batch: BatchId,
    /// Completed, with or without failures.
    pub state: BatchState,
}
