//! Where items go: the seam between the engine and a system elsewhere.

use crate::Headers;
use async_trait::async_trait;
use std::{
    fmt,
    time::{Duration, SystemTime},
};

/// Delivers items to a system elsewhere. It sends, and says what came back; whether and when to send
/// again is decided by others.
#[async_trait]
pub trait Sink: Send + Sync {
    /// What this sink can do.
    fn capabilities(&self) -> SinkCapabilities;

    /// Reaches the system on every connection, with its credentials, and delivers nothing. Returns for
    /// each how long the system wants to be left alone, if it says so.
    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError>;

    /// Sends one group over one connection, once. Whatever comes back is an answer: nothing here is
    /// sent twice. Items with the same key arrive in their order, and none arrives after one that did
    /// not: it is [`Verdict::Behind`] that one.
    async fn deliver(&self, delivery: Delivery<'_>) -> Answer;

    /// Whether a request should carry at most one item of each key that orders items, because the system
    /// answers each item by itself: the second of a key may be stored although the first was not.
    /// Whoever makes groups heeds it, so that each request is full.
    fn one_per_key(&self) -> bool {
        false
    }

    /// Which part of the system the item goes to: a collection, a topic, a path. Parts can hang, fail and
    /// throttle apart from each other, so each has a pace and a breaker of its own, and a request goes to
    /// one of them. `None`: the system is one, or the item does not say.
    fn destination(&self, _item: &Item<'_>) -> Option<String> {
        None
    }
}

/// What a sink can do, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkCapabilities {
    /// For messages to people: `http`, `dataverse`, `nats`.
    pub name: &'static str,
    /// Its connections, by name: credentials or endpoints that the system limits each by itself.
    pub connections: Vec<String>,
    /// What is asked of the system: operations that cost differently are paced apart.
    pub operation: String,
    /// The most items that one request can carry.
    pub max_group: usize,
    /// Whether one request can carry items of several topics.
    pub mixes_topics: bool,
    /// What the system is known to allow on each connection. Empty if nothing is known.
    pub budgets: Vec<Budget>,
}

/// What a system allows on one connection within a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// What is counted.
    pub kind: BudgetKind,
    /// How much of it.
    pub limit: u64,
    /// Within any time of this length. What is concurrent needs none: zero.
    pub window: Duration,
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetKind {
    /// Requests, whatever becomes of them.
    Requests,
    /// The seconds that the system spends on requests.
    ExecutionSeconds,
    /// Requests at the same time.
    Concurrent,
}

/// Items to send in one request.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// Which connection, by its place in [`SinkCapabilities::connections`].
    pub connection: usize,
    /// At least one, and at most [`SinkCapabilities::max_group`].
    pub items: &'a [Item<'a>],
}

/// One thing to deliver: a message, or a record of a file.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The same for every attempt: the system can recognize by it what it has seen before.
    pub id: &'a str,
    /// What the message is about, by which sinks choose a place for it. A record has none: empty.
    pub topic: &'a str,
    /// What the item is about. Items with the same key stay in order, unless `ordered` says otherwise.
    pub key: Option<&'a str>,
    /// Whether items with this key must arrive in their order.
    pub ordered: bool,
    /// Beside the payload.
    pub headers: &'a Headers,
    /// For a record, one JSON object; for a message, whatever its headers declare.
    pub payload: &'a [u8],
    /// When the message was published, by the database's clock.
    pub published_at: Option<SystemTime>,
}

impl<'a> Item<'a> {
    /// A record of a file.
    pub const fn record(id: &'a str, payload: &'a str) -> Self {
        let (headers, payload) = (Headers::none(), payload.as_bytes());
        Self { id, topic: "", key: None, ordered: true, headers, payload, published_at: None }
    }

    /// The key that orders the item, if one does.
    pub fn order(&self) -> Option<&'a str> {
        self.key.filter(|_| self.ordered)
    }

    /// The payload as text, or why it is none.
    pub fn text(&self) -> Result<&'a str, String> {
        str::from_utf8(self.payload).map_err(|_| "the payload is no UTF-8 text".to_owned())
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What became of the items.
    pub outcome: Outcome,
    /// What the system told about its pace.
    pub hint: Hint,
}

/// What became of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// One verdict per item, in their order.
    Answered(Vec<Verdict>),
    /// The group was refused for the sake of at least one item, by the system or by the sink before
    /// it sent anything, and nothing was done. With a group of one, the item is at fault.
    Refused(String),
    /// The group is too large for one request; nothing was done.
    TooLarge(String),
    /// The system refused for the sake of its pace; nothing was done.
    Throttled {
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
        /// What it said.
        reason: String,
    },
    /// The system is not there, or not able to work. No item is at fault. Some may have been
    /// delivered.
    Unavailable(String),
    /// No answer in time. Some items may have been delivered.
    TimedOut,
    /// The sink itself is at fault: a credential, an address, a right. It is the same for every item.
    Broken(String),
    /// Nothing will ever be taken there again, and nobody should ask.
    Gone(String),
}

/// What became of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Delivered.
    Done,
    /// Refused for the sake of the system's pace; nothing was done.
    Throttled {
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The system was not there for it. The item is not at fault, and may have been delivered.
    Unavailable(String),
    /// Failed, for a reason that may pass.
    Retry(String),
    /// Failed for good.
    Dead(String),
    /// Not sent, because an item before it with the same key was not done.
    Behind,
}

/// What a system tells about its pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// So much should be in flight on this connection.
    pub parallelism: Option<u32>,
    /// So many requests are left, until this has passed.
    pub remaining: Option<(u64, Duration)>,
}

/// Why a sink cannot be used, in one line that says what to do.
#[derive(Debug)]
pub struct SinkError(pub String);

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SinkError {}
