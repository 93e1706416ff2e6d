//! What an outbox can do, as data.

use std::time::Duration;

/// What an outbox can do. Relays, the command line and the conformance suite go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxCapabilities {
    /// For messages: `memory`, `sqlite`, `postgres`, `dynamodb`.
    pub name: &'static str,
    /// How its messages are read.
    pub reads: Reads,
    /// Whether messages of a key come in the order in which they were published.
    pub order: KeyOrder,
    /// Whose clock decides when a lease ends and when a message is due.
    pub clock: WhoseClock,
    /// How many relays can have lanes at a time.
    pub relays: Relays,
    /// At most so many messages are published or settled in one transaction; `None`: any number.
    pub largest_transaction: Option<usize>,
    /// Whether the store has batches beside its outbox.
    pub batches: bool,
    /// What a relay does unless it is told otherwise.
    pub habits: Habits,
}

/// How messages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// In the order of ids that grow. A cursor says how far a lane is.
    Log,
    /// Whatever is pending. Each message that is done is marked.
    ByState,
}

/// Whether messages of a key come in the order in which they were published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Always.
    Promised,
    /// If this holds.
    If(&'static str),
}

/// Whose clock decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhoseClock {
    /// The store's.
    Store,
    /// The relay's: the store has none.
    Relay,
}

/// How many relays can have lanes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relays {
    /// They share the lanes.
    Many,
    /// One has all of them, and others stand by.
    One,
}

/// How often a relay asks, unless it is told otherwise: where requests cost money, less often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// The longest pause between two looks for messages.
    pub poll: Duration,
    /// How long a relay has its lanes after it was heard of last.
    pub lease: Duration,
}

impl Default for Habits {
    fn default() -> Self {
        Self { poll: Duration::from_millis(100), lease: Duration::from_secs(15) }
    }
}

impl OutboxCapabilities {
    /// A log in a database with a clock and transactions of any size.
    pub const fn log(name: &'static str, habits: Habits) -> Self {
        Self {
            name,
            reads: Reads::Log,
            order: KeyOrder::Promised,
            clock: WhoseClock::Store,
            relays: Relays::Many,
            largest_transaction: None,
            batches: true,
            habits,
        }
    }
}
