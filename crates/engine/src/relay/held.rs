//! Keys that wait for what was set aside. They are known by their hashes: two keys with one hash wait for each
//! other, which delays them and nothing else.

use std::collections::HashMap;
use tidegate_core::outbox::{HeldKey, KeyHash, Lane};

/// Keys that wait, by sink.
#[derive(Default)]
pub(super) struct Held(HashMap<(usize, KeyHash), Hold>);

struct Hold {
    lane: Lane,
    /// Messages that were set aside since, and are not settled yet.
    unsettled: u32,
}

impl Held {
    pub fn contains(&self, sink: usize, key: KeyHash) -> bool {
        !self.0.is_empty() && self.0.contains_key(&(sink, key))
    }

    /// Nothing more of the key is sent until it is freed.
    pub fn hold(&mut self, sink: usize, key: KeyHash, lane: Lane) {
        self.0.entry((sink, key)).or_insert(Hold { lane, unsettled: 0 });
    }

    /// A message of a key was set aside, and the store does not know yet.
    pub fn set_aside(&mut self, sink: usize, key: KeyHash, lane: Lane) {
        self.hold(sink, key, lane);
        if let Some(hold) = self.0.get_mut(&(sink, key)) {
            hold.unsettled += 1;
        }
    }

    /// The store knows now.
    pub fn settled(&mut self, sink: usize, key: KeyHash) {
        if let Some(hold) = self.0.get_mut(&(sink, key)) {
            hold.unsettled = hold.unsettled.saturating_sub(1);
        }
    }

    /// Whether more of the key was set aside than the store knows.
    pub fn is_unsettled(&self, sink: usize, key: KeyHash) -> bool {
        self.0.get(&(sink, key)).is_some_and(|hold| hold.unsettled > 0)
    }

    /// The store has nothing left that holds the key. What is on its way there still may.
    pub fn free(&mut self, sink: usize, key: KeyHash) {
        if self.0.get(&(sink, key)).is_some_and(|hold| hold.unsettled == 0) {
            self.0.remove(&(sink, key));
        }
    }

    pub fn lose(&mut self, lane: Lane) {
        self.0.retain(|_, hold| hold.lane != lane);
    }

    pub fn gain(&mut self, held: &[HeldKey], sink_named: impl Fn(&str) -> Option<usize>) {
        for key in held {
            if let Some(sink) = sink_named(&key.sink) {
                self.hold(sink, key.key, key.lane);
            }
        }
    }
}
