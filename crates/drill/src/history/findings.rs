//! What a comparison of a history found.

use serde::Serialize;

/// Most examples that are kept: more say nothing new.
const EXAMPLES: usize = 20;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    /// How many messages there were.
    pub messages: Messages,
    /// Messages that the surviving server has, and that the sink never took; and messages whose commit was
    /// acknowledged, that the surviving server does not have, although no server fault came after the commit.
    pub lost: u64,
    /// Deliveries of messages that nobody committed, or that the surviving server does not have although no server
    /// fault came after the delivery.
    pub unexpected: u64,
    /// Messages that arrived before an earlier one of their key was answered.
    pub order_violations: u64,
    /// Keys whose last delivery is not their last message: a duplicate came after it.
    pub keys_with_older_end: u64,
    /// Deliveries of messages that the sink had taken before.
    pub duplicates: Duplicates,
    /// Messages that killed and stopped relays had in flight, measured at the sink.
    pub in_flight: InFlight,
    /// How long the healthy topic waited.
    pub stall: Stall,
    /// The first of what went wrong, in words.
    pub examples: Vec<String>,
}

/// How many messages there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Messages {
    /// Attempted.
    pub attempted: u64,
    /// Acknowledged by the server.
    pub committed: u64,
    /// Rolled back.
    pub rolled_back: u64,
    /// Commits without an answer.
    pub unknown: u64,
    /// On the surviving server at the end.
    pub stored: u64,
    /// Deliveries that the sink took.
    pub accepted: u64,
    /// Deliveries that the sink refused.
    pub refused: u64,
    /// Delivered, but the surviving server never had them: a server fault took them back.
    pub delivered_then_taken_back: u64,
    /// Acknowledged and never delivered, but the surviving server does not have them: a server fault took them back.
    pub taken_back: u64,
}

/// Deliveries of messages that the sink had taken before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// All of them.
    pub total: u64,
    /// Between the two deliveries, a relay that made one of them was killed or stopped, or such a fault was
    /// still showing.
    pub after_relay_faults: u64,
    /// The same for a fault of the server.
    pub after_server_faults: u64,
    /// Neither.
    pub unexplained: u64,
}

/// Messages that relays had in flight at the moments when they were killed or stopped, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InFlight {
    /// Faults of relays.
    pub faults: u64,
    /// Arrived, and not answered yet.
    pub unanswered: u64,
    /// Answered less than a second before: the relay may not have settled them.
    pub just_answered: u64,
    /// Most at one fault, of both kinds together.
    pub most: u64,
}

impl InFlight {
    /// Of both kinds.
    pub fn total(&self) -> u64 {
        self.unanswered + self.just_answered
    }
}

/// How long the healthy topic waited, in milliseconds, while no server fault was on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// Longest time without a delivery of the topic while committed messages waited.
    pub topic_ms: u64,
    /// Longest time that one committed message waited …
    pub message_ms: u64,
    /// … and when it was committed, in milliseconds since the start.
    pub message_at_ms: u64,
}

impl Findings {
    pub(super) fn example(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(text());
        }
    }
}
