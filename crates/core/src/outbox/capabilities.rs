//! What an outbox can do, as data.

use crate::limits::MAX_PAYLOAD_BYTES;
use std::{borrow::Cow, fmt, time::Duration};

/// What an outbox can do. Relays, the command line and the conformance suite go by it. A store need not imitate what
/// it cannot have: it says so here, and in its own documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// What Tidegate can publish; `None`: the application writes the table, and only the application.
    pub publishing: Option<Publishing>,
    /// Who knows which message of a key is next.
    pub lines: Lines,
    /// From when on a message is known by its id.
    pub ids: Ids,
    /// How what was set aside is listed.
    pub listing: Listing,
    /// Whether messages that were sent can be read and removed.
    pub retention: bool,
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

/// Whether messages of a key come in the order in which they were published. Shown, it is a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Always.
    Promised,
    /// If this holds.
    If(Cow<'static, str>),
    /// Never, because of this.
    Never(Cow<'static, str>),
}

/// What can be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publishing {
    /// A payload of so many bytes is held whatever else is in the message.
    pub largest_payload: usize,
    /// Whether messages are read with more headers than they were published with.
    pub adds_headers: bool,
    /// A limit on outstanding messages is checked against a count that may be so old.
    pub counted: Duration,
}

/// Who knows which message of a key is next among those that were set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// The store. What is listed shows it, and what people decide is heeded at once.
    InStore,
    /// The relay that has the lane. What is listed shows a message as it was when it was set aside, and what people
    /// decide is heeded when the relay says next that it lives.
    InRelay,
}

/// From when on a message is known by its id, and found by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// When it is published, and as long as it is stored.
    Published,
    /// While it is set aside: its id is the position that it has then.
    SetAside,
}

/// How what was set aside is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// In the order of ids.
    ById,
    /// In an order of the store's own, always the same one.
    ByPlace,
}

/// Whose clock decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhoseClock {
    /// The store's.
    Store,
    /// Each relay's own: the store has none. A relay is gone when another one has seen it stand still for its lease.
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

impl Publishing {
    /// All that a message may be is held as it is, and counts are exact.
    pub const fn of_all() -> Self {
        let (adds_headers, counted) = (false, Duration::ZERO);
        Self { largest_payload: MAX_PAYLOAD_BYTES, adds_headers, counted }
    }
}

impl fmt::Display for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ORDER: &str =
            "messages of a key are delivered in the order in which they were published";
        match self {
            Self::Promised => f.write_str(ORDER),
            Self::If(condition) => write!(f, "{ORDER}, if {condition}"),
            Self::Never(reason) => write!(f, "messages are delivered in no order: {reason}"),
        }
    }
}

impl OutboxCapabilities {
    /// What people should know about it when a relay starts, a sentence each; nothing about a store that can do all.
    pub fn remarks(&self) -> Vec<String> {
        let order = (self.order != KeyOrder::Promised).then(|| self.order.to_string());
        let relays = match self.relays {
            Relays::Many => None,
            Relays::One => Some("one relay at a time delivers it; others stand by"),
        };
        let clock = match self.clock {
            WhoseClock::Store => None,
            WhoseClock::Relay => Some(
                "the store has no clock: relays go by their own, and take over what another one had when they have seen \
                 it stand still for its lease",
            ),
        };
        order.into_iter().chain(relays.into_iter().chain(clock).map(str::to_owned)).collect()
    }

    /// Why a command that needs batches refuses it; `None` if it has batches.
    pub fn without_batches(&self) -> Option<String> {
        let name = self.name;
        (!self.batches).then(|| format!("a {name}: store is an outbox and has no batches"))
    }

    /// A log in a database with a clock and transactions of any size.
    pub const fn log(name: &'static str, habits: Habits) -> Self {
        Self {
            name,
            reads: Reads::Log,
            order: KeyOrder::Promised,
            clock: WhoseClock::Store,
            relays: Relays::Many,
            largest_transaction: None,
            publishing: Some(Publishing::of_all()),
            lines: Lines::InStore,
            ids: Ids::Published,
            listing: Listing::ById,
            retention: true,
            batches: true,
            habits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_what_a_store_cannot_do() {
        let log = OutboxCapabilities::log("sqlite", Habits::default());
        assert_eq!((log.remarks(), log.without_batches()), (Vec::new(), None));
        let poor = OutboxCapabilities {
            name: "poor",
            order: KeyOrder::If("clocks agree".into()),
            clock: WhoseClock::Relay,
            relays: Relays::One,
            batches: false,
            ..log
        };
        let [order, relays, clock] = &poor.remarks()[..] else { panic!("{:?}", poor.remarks()) };
        assert!(order.ends_with("were published, if clocks agree"), "{order}");
        assert!(relays.contains("one relay at a time") && clock.contains("has no clock"));
        let refusal = poor.without_batches().expect("it has none");
        assert_eq!(refusal, "a poor: store is an outbox and has no batches");
        let never = KeyOrder::Never("it has no time".into());
        assert_eq!(never.to_string(), "messages are delivered in no order: it has no time");
    }
}
