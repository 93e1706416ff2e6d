//! The history of a drill of relays: messages that were attempted and committed, deliveries that the sink saw, faults
//! that were made. [`judge`](History::judge) compares them; it is pure.
//!
//! All times are microseconds since the start of the drill, by one clock.

mod duplicates;
mod findings;
mod judge;
mod order;
mod stall;
#[cfg(test)]
mod tests;

pub use findings::{Duplicates, Findings, InFlight, Messages, Stall};

/// Microseconds since the start of the drill.
pub type Moment = u64;

/// What a publisher knows about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The commit was sent, and no answer came.
    Unknown,
    /// The server acknowledged the commit at this moment.
    Committed(Moment),
    /// The transaction was rolled back, or its connection broke before the commit was sent.
    RolledBack,
}

/// A message that somebody tried to publish. Its number is its place in [`History::attempts`].
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Its key. A key belongs to one topic.
    pub key: u32,
    /// Whether it is of the topic whose sink never fails.
    pub healthy: bool,
    /// What became of it.
    pub fate: Fate,
}

/// A delivery, as the sink saw it.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// Which message.
    pub number: u32,
    /// Which relay process sent it.
    pub relay: u32,
    /// When it arrived.
    pub arrived: Moment,
    /// When it was answered; `None` if the connection broke before.
    pub answered: Option<Moment>,
    /// Whether the sink took it. If not, the sink refused it and the relay has to send it again.
    pub accepted: bool,
}

/// A fault of one relay process: it was killed, stopped for a while, or ended.
#[derive(Clone, Copy, Debug)]
pub struct RelayFault {
    /// Which process.
    pub relay: u32,
    /// When it began.
    pub from: Moment,
    /// When the process was let go on; the same moment for one that was killed.
    pub to: Moment,
}

/// A fault of the server: it was down, or it was replaced by its standby.
#[derive(Clone, Copy, Debug)]
pub struct ServerFault {
    /// When it began.
    pub from: Moment,
    /// When the server accepted writes again.
    pub to: Moment,
}

/// Everything that happened in a drill.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By number.
    pub attempts: Vec<Attempt>,
    /// In the order of their arrival.
    pub sightings: Vec<Sighting>,
    /// In any order.
    pub relay_faults: Vec<RelayFault>,
    /// In the order of time; they do not overlap.
    pub server_faults: Vec<ServerFault>,
    /// The numbers of the messages that the surviving server has, in the order of its ids.
    pub stored: Vec<u32>,
    /// How long a fault may show after it has ended: leases expire, connections are made anew.
    pub aftermath: Moment,
}
