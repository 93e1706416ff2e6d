//! Lanes: the unit of lease and of order.

use super::{HeldKey, MessageId, Route, Topics};
use crate::{Fence, WorkerId};
use std::time::Duration;
use twox_hash::XxHash3_64;

/// How many lanes an outbox has: many relays can share them evenly, and one relay reads all of them
/// in one statement.
pub const LANES: u16 = 64;

/// A hash bucket of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u16);

impl Lane {
    /// All lanes.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LANES).map(Self)
    }
}

/// What a key is known by among what was set aside. Two keys with one hash wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub i64);

impl KeyHash {
    /// The hash of a key.
    pub fn of(key: &str) -> Self {
        Self(XxHash3_64::oneshot(key.as_bytes()) as i64)
    }
}

/// The right to a lane until the store's clock passes its expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLease {
    /// Which lane.
    pub lane: Lane,
    /// Proves the right.
    pub fence: Fence,
}

/// A relay says that it lives, and asks for its share.
#[derive(Clone, Debug)]
pub struct Share {
    /// Who asks.
    pub relay: WorkerId,
    /// What it holds already, which is renewed.
    pub held: Vec<LaneLease>,
    /// Where messages go now: what was set aside for want of a route finds one here.
    pub routes: Vec<Route>,
    /// How long leases last from now.
    pub lease: Duration,
}

/// What a relay got.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// Lanes that it did not hold before.
    pub gained: Vec<Gained>,
    /// Lanes that it holds no longer.
    pub lost: Vec<Lane>,
    /// How many lanes it has above its share. It should give back so many when they are at rest.
    pub surplus: usize,
    /// How many relays live.
    pub relays: usize,
}

/// Lanes that a relay does without.
#[derive(Clone, Debug)]
pub struct GiveBack {
    /// Who gives them back.
    pub relay: WorkerId,
    /// Which lanes.
    pub lanes: Vec<LaneLease>,
    /// Whether the relay ends.
    pub ends: bool,
}

/// A lane that was just leased, and how far it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gained {
    /// Which lane, and the right to it.
    pub lease: LaneLease,
    /// All messages up to here are done or set aside, but for those of sinks that lag.
    pub cursor: i64,
    /// Sinks that have their own cursor.
    pub lags: Vec<Lag>,
    /// Keys that wait for what was set aside.
    pub held: Vec<HeldKey>,
    /// Messages behind one of the cursors that were set aside already.
    pub aside: Vec<MessageId>,
}

/// A sink that is behind its lane. Its topics are read apart from the rest until it has caught up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Which sink.
    pub sink: String,
    /// What went to it when it fell behind.
    pub topics: Topics,
    /// All messages on these topics up to here are done or set aside.
    pub cursor: i64,
}
