//! Answers per round trip: how much the service really works on at the same time.

/// Counts answers. A round trip ends when a request is answered that began after the last one ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    now: u32,
    before: u32,
}

impl Answers {
    pub fn add(&mut self) {
        self.now = self.now.saturating_add(1);
    }

    pub fn round_ended(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Within the current round trip, so far.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// Within a whole round trip.
    pub fn per_round_trip(&self) -> u32 {
        self.now.max(self.before)
    }
}
