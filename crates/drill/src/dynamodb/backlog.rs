//! The changes that a lagging index does not show yet. Pure: time is an argument.

use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use tokio::time::Instant;

/// What the replica of one index has still to be told: for each item, its states in order.
#[derive(Debug, Default)]
pub struct Backlog {
    items: BTreeMap<String, VecDeque<(Instant, Value)>>,
}

impl Backlog {
    /// Notes a change that is shown from `due` on, but not before an earlier change of the same item.
    pub fn note(&mut self, item: String, change: Value, due: Instant) {
        let changes = self.items.entry(item).or_default();
        let due = changes.back().map_or(due, |(before, _)| due.max(*before));
        changes.push_back((due, change));
    }

    /// Takes what is to be shown by now: one change for each item, which is its latest.
    pub fn take_due(&mut self, now: Instant) -> Vec<Value> {
        let mut due = Vec::new();
        for changes in self.items.values_mut() {
            let count = changes.partition_point(|(due, _)| *due <= now);
            due.extend(changes.drain(..count).next_back().map(|(_, change)| change));
        }
        self.items.retain(|_, changes| !changes.is_empty());
        due
    }

    /// Takes all.
    pub fn take_all(&mut self) -> Vec<Value> {
        let latest = |mut changes: VecDeque<(Instant, Value)>| changes.pop_back();
        let items = std::mem::take(&mut self.items).into_values();
        items.filter_map(latest).map(|(_, change)| change).collect()
    }
}
