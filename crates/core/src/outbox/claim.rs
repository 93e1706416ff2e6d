//! What a relay reads: across all topics and all its lanes, oldest first, within one limit.

use super::{Epoch, Lane, Message, Position, SetAside, Topics};
use std::time::Duration;

/// Asks for messages.
#[derive(Clone, Debug, Default)]
pub struct ClaimRequest {
    /// The epoch in which the lanes were leased.
    pub epoch: Epoch,
    /// What is read from lanes: the lanes as a whole, and sinks that lag behind them.
    pub readers: Vec<Reader>,
    /// Lanes whose due messages among those set aside are wanted.
    pub lanes: Vec<Lane>,
    /// Those that are under way already.
    pub under_way: Vec<Position>,
    /// Sinks that take no more: what was set aside for them is not wanted.
    pub closed: Vec<String>,
    /// At most so many of those set aside.
    pub most_due: usize,
    /// At most so many bytes for each reader, and for what was set aside, at least those of payloads;
    /// one message may have more.
    pub most_bytes: usize,
}

/// Reads lanes in order.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Names the sink that lags; empty for the lanes as a whole.
    pub name: String,
    /// Only these topics.
    pub takes: Option<Topics>,
    /// Not these.
    pub leaves: Vec<Topics>,
    /// From where on.
    pub places: Vec<Place>,
    /// At most so many messages.
    pub most: usize,
}

impl Reader {
    /// Whether this reader wants messages on a topic.
    pub fn wants(&self, topic: &str) -> bool {
        self.takes.as_ref().is_none_or(|topics| topics.contains(topic))
            && !self.leaves.iter().any(|topics| topics.contains(topic))
    }
}

/// How far a lane was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which lane.
    pub lane: Lane,
    /// Only messages behind this.
    pub after: i64,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    /// One for each reader, in their order.
    pub readings: Vec<Reading>,
    /// Messages that were set aside and are due: heads of their keys, each with some of those that
    /// wait behind it. In the order of their positions.
    pub due: Vec<Message>,
    /// When the next of them is due.
    pub next_due: Option<Duration>,
    /// Whether there are messages that cannot be read yet, because an older transaction is open.
    pub held_back: bool,
    /// What was set aside before and is done: somebody else has marked it. Only of stores that are read by state.
    pub gone: Vec<(Lane, Position)>,
    /// What was set aside before and must be so for another reason now. Only of stores that are read by state.
    pub set_aside: Vec<SetAside>,
}

/// What one reader got.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// In the order of their positions.
    pub messages: Vec<Message>,
    /// In each lane of the reader, everything up to here has been read now. A lane that was read
    /// further before stays there.
    pub read_to: i64,
    /// Whether there may be more at once.
    pub more: bool,
}
