//! Keys that wait for what was set aside. They are known by their hashes: two keys with one hash wait for each
//! other, which delays them and nothing else.

use std::collections::HashMap;
use tidegate_core::outbox::{HeldKey, KeyHash, Lane};

/// Keys that wait, by sink.
#[derive(Default)]
pub(super) struct Held {
    holds: HashMap<(usize, KeyHash), Hold>,
    /// Keys of which something was read, and neither done nor set aside since. Only of stores that are read by state.
    unmarked: HashMap<(usize, KeyHash), (Lane, usize)>,
}

struct Hold {
    lane: Lane,
    /// Messages that were set aside since, and are not settled yet.
    unsettled: u32,
}

impl Held {
    pub fn contains(&self, sink: usize, key: KeyHash) -> bool {
        !self.holds.is_empty() && self.holds.contains_key(&(sink, key))
    }

    /// Whether what is read now of a key is set aside. Not while earlier ones are only in memory: after a crash those
    /// are read again, and a store that is read by state gives them places behind all that was set aside.
    pub fn sets_aside(&self, sink: usize, key: KeyHash) -> bool {
        self.contains(sink, key) && !self.unmarked.contains_key(&(sink, key))
    }

    /// A message that is only marked in the store when it is done was read.
    pub fn opened(&mut self, sink: usize, key: Option<KeyHash>, lane: Lane) {
        if let Some(key) = key {
            self.unmarked.entry((sink, key)).or_insert((lane, 0)).1 += 1;
        }
    }

    /// It is done or set aside.
    pub fn closed(&mut self, sink: Option<usize>, key: Option<KeyHash>) {
        let Some(key) = sink.zip(key) else { return };
        if let Some((_, left)) = self.unmarked.get_mut(&key) {
            *left -= 1;
            if *left == 0 {
                self.unmarked.remove(&key);
            }
        }
    }

    /// Nothing more of the key is sent until it is freed.
    pub fn hold(&mut self, sink: usize, key: KeyHash, lane: Lane) {
        self.holds.entry((sink, key)).or_insert(Hold { lane, unsettled: 0 });
    }

    /// A message of a key was set aside, and the store does not know yet.
    pub fn set_aside(&mut self, sink: usize, key: KeyHash, lane: Lane) {
        self.hold(sink, key, lane);
        if let Some(hold) = self.holds.get_mut(&(sink, key)) {
            hold.unsettled += 1;
        }
    }

    /// The store knows now.
    pub fn settled(&mut self, sink: usize, key: KeyHash) {
        if let Some(hold) = self.holds.get_mut(&(sink, key)) {
            hold.unsettled = hold.unsettled.saturating_sub(1);
        }
    }

    /// Whether more of the key was set aside than the store knows.
    pub fn is_unsettled(&self, sink: usize, key: KeyHash) -> bool {
        self.holds.get(&(sink, key)).is_some_and(|hold| hold.unsettled > 0)
    }

    /// The store has nothing left that holds the key. What is on its way there still may.
    pub fn free(&mut self, sink: usize, key: KeyHash) {
        if self.holds.get(&(sink, key)).is_some_and(|hold| hold.unsettled == 0) {
            self.holds.remove(&(sink, key));
        }
    }

    pub fn lose(&mut self, lane: Lane) {
        self.holds.retain(|_, hold| hold.lane != lane);
        self.unmarked.retain(|_, (of, _)| *of != lane);
    }

    pub fn gain(&mut self, held: &[HeldKey], sink_named: impl Fn(&str) -> Option<usize>) {
        for key in held {
            if let Some(sink) = sink_named(&key.sink) {
                self.hold(sink, key.key, key.lane);
            }
        }
    }
}
