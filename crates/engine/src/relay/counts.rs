//! What became of messages, for people.

/// What became of messages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Delivered.
    pub delivered: u64,
    /// Not sent, because a later one of the same key was delivered in their place.
    pub coalesced: u64,
    /// Set aside to be tried again.
    pub retried: u64,
    /// Among those, how often that used up no attempt: a sink was too busy, or not there.
    pub put_off: u64,
    /// Given up.
    pub dead: u64,
    /// Set aside because no route takes their topic.
    pub unrouted: u64,
    /// Lanes that were lost before their messages were settled.
    pub late: u64,
}

impl Counts {
    /// How often something became of a message: what stays the same while all are put off.
    pub fn moves(&self) -> u64 {
        let retried = self.retried.saturating_sub(self.put_off);
        self.delivered + self.coalesced + retried + self.dead + self.unrouted
    }
}
