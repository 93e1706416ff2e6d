//! Which shards have delivered messages, as far as that was found out. Pure.

use crate::item::Item;
use std::{collections::BTreeSet, ops::Bound};

/// Shards of topics, and how far they and the table were gone through.
#[derive(Debug, Default)]
pub(super) struct Shards {
    known: BTreeSet<String>,
    /// The one that is being gone through.
    at: String,
    /// Where the scan that finds shards goes on.
    pub from: Option<Item>,
    /// Whether it has come to the end before.
    pub is_complete: bool,
}

impl Shards {
    /// Returns whether it is new.
    pub fn add(&mut self, shard: &str) -> bool {
        self.known.insert(shard.to_owned())
    }

    /// All shards, from the one where it was stopped last.
    pub fn round(&self) -> Vec<String> {
        let from = (Bound::Included(&self.at), Bound::Unbounded);
        let rest = self.known.range::<String, _>(from);
        let before = (Bound::Unbounded, Bound::Excluded(&self.at));
        rest.chain(self.known.range::<String, _>(before)).cloned().collect()
    }

    /// There is more to remove in this one.
    pub fn stop_at(&mut self, shard: &str) {
        shard.clone_into(&mut self.at);
    }

    /// The scan has come to here.
    pub fn scanned(&mut self, next: Option<Item>) {
        self.is_complete |= next.is_none();
        self.from = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_begins_where_the_last_one_stopped() {
        let mut shards = Shards::default();
        let new: Vec<bool> = ["b_0", "a_0", "c_1", "a_0"].map(|it| shards.add(it)).to_vec();
        assert_eq!(new, [true, true, true, false]);
        assert_eq!(shards.round(), ["a_0", "b_0", "c_1"]);
        shards.stop_at("b_0");
        assert_eq!(shards.round(), ["b_0", "c_1", "a_0"]);
    }

    #[test]
    fn the_scan_is_complete_when_it_was_at_the_end_once() {
        let mut shards = Shards::default();
        shards.scanned(Some(Item::default()));
        assert!(!shards.is_complete);
        shards.scanned(None);
        shards.scanned(Some(Item::default()));
        assert!(shards.is_complete && shards.from.is_some());
    }
}
