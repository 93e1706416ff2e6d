//! What a relay can be told, with defaults that fit most.

use crate::deliver::STALLED_AFTER;
use std::time::Duration;
use tidegate_core::WorkerId;

/// How a relay works.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Names the relay: no other has this name, nor had it before.
    pub relay: WorkerId,
    /// How long lanes stay with a relay that does not answer any more: how late a crash is noticed.
    /// From [`MIN_LEASE`](tidegate_core::limits::MIN_LEASE) to
    /// [`MAX_LEASE`](tidegate_core::limits::MAX_LEASE).
    pub lease: Duration,
    /// How long deliveries may go on after a stop was asked for.
    pub grace: Duration,
    /// The longest pause between two looks for messages.
    pub poll: Duration,
    /// Ends when nothing is left that can be delivered.
    pub drain: bool,
    /// How long messages are kept that were sent; `None`: for ever.
    pub keep: Option<Duration>,
    /// A sink that puts everything off for so long, or one group, is in trouble, and people are told.
    pub stalled_after: Duration,
}

impl RelayOptions {
    /// Defaults for a relay with this name.
    pub fn new(relay: WorkerId) -> Self {
        Self {
            relay,
            lease: Duration::from_secs(15),
            grace: Duration::from_secs(20),
            poll: Duration::from_millis(100),
            drain: false,
            keep: None,
            stalled_after: STALLED_AFTER,
        }
    }
}
