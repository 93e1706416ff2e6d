//! What a relay writes back, in one transaction.

use super::{Before, Epoch, KeyHash, Lag, Lane, Position, StuckState};
use crate::Fence;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Everything that one transaction settles.
#[derive(Clone, Debug, Default)]
pub struct Settlement {
    /// The epoch in which the lanes were leased.
    pub epoch: Epoch,
    /// One more than the number of the relay's last settlement of which the store took something. A copy of an
    /// earlier one that arrives late changes nothing in a lane.
    pub number: u64,
    /// How far lanes are.
    pub lanes: Vec<Progress>,
    /// Messages that are not simply done; again for those that were set aside before.
    pub aside: Vec<SetAside>,
    /// Messages that were set aside before and are done; of a store that is read by state, all that are done.
    pub done: Vec<(Lane, Position)>,
}

impl Settlement {
    /// Whether there is nothing to settle.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

/// How far a lane is. Every lane that a settlement touches has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which lane.
    pub lane: Lane,
    /// Proves the right to it.
    pub fence: Fence,
    /// All messages up to here are done or set aside, but for those of sinks that lag.
    pub cursor: i64,
    /// Sinks that lag; they replace those that were stored.
    pub lags: Vec<Lag>,
    /// What was done under other routes; it replaces what was stored.
    pub before: Option<Before>,
}

/// A message that is not simply done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its lane.
    pub lane: Lane,
    /// Which message of it.
    pub position: Position,
    /// Its topic.
    pub topic: String,
    /// What its key is known by.
    pub key: Option<KeyHash>,
    /// The sink that it is for; empty if it has no route.
    pub sink: String,
    /// What becomes of it.
    pub aside: Aside,
}

/// What becomes of a message that is not simply done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aside {
    /// It is tried again. What follows with its key waits.
    Retry {
        /// How many attempts have failed.
        attempts: u32,
        /// Why the last one did.
        reason: String,
        /// From now by the store's clock.
        delay: Duration,
    },
    /// It waits behind others with its key that were set aside.
    Behind,
    /// It is not due yet. Nothing waits for it.
    Later {
        /// From now by the store's clock.
        delay: Duration,
    },
    /// No route takes its topic.
    Unrouted,
    /// It is given up.
    Dead {
        /// How many attempts have failed.
        attempts: u32,
        /// Why the last one did.
        reason: String,
        /// What that means for its key.
        then: OnDead,
    },
}

/// How a message that is not simply done is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// What it waits for.
    pub state: StuckState,
    /// How many attempts have failed; those that were counted before stay.
    pub attempts: u32,
    /// Why the last one did; empty: as before.
    pub reason: &'a str,
    /// What its death means for its key.
    pub then: OnDead,
    /// From now by the store's clock.
    pub delay: Duration,
}

impl Aside {
    /// How it is stored.
    pub fn waiting(&self) -> Waiting<'_> {
        let waits =
            |state, delay| Waiting { state, attempts: 0, reason: "", then: OnDead::Skip, delay };
        match self {
            Aside::Retry { attempts, reason, delay } => {
                Waiting { attempts: *attempts, reason, ..waits(StuckState::Retry, *delay) }
            }
            Aside::Behind => waits(StuckState::Behind, Duration::ZERO),
            Aside::Later { delay } => waits(StuckState::Later, *delay),
            Aside::Unrouted => waits(StuckState::Unrouted, Duration::ZERO),
            Aside::Dead { attempts, reason, then } => Waiting {
                attempts: *attempts,
                reason,
                then: *then,
                ..waits(StuckState::Dead, Duration::ZERO)
            },
        }
    }
}

/// What happens to the rest of a key when a message is given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDead {
    /// It goes on.
    #[default]
    Skip,
    /// It waits until somebody retries or drops the dead message.
    Block,
    /// It is set aside with the dead message, and counts as dead, until somebody retries or drops it.
    Park,
}

impl OnDead {
    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            OnDead::Skip => "skip",
            OnDead::Block => "block",
            OnDead::Park => "park",
        }
    }

    /// Reads what is stored.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Skip, Self::Block, Self::Park].into_iter().find(|it| it.as_str() == word)
    }
}

/// A key for which something was set aside, so that more of it must wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldKey {
    /// Its lane.
    pub lane: Lane,
    /// For which sink.
    pub sink: String,
    /// What it is known by.
    pub key: KeyHash,
}

/// What became of a settlement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Lanes that were lost before: nothing of them was changed.
    pub late: Vec<Lane>,
    /// Keys of this settlement for which nothing that holds them is left.
    pub freed: Vec<HeldKey>,
}
