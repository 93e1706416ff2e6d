//! Rows that were read and are not settled: pure bookkeeping.
//!
//! A row has no number that grows, so it gets one here when it is read. Nothing of this outlives the
//! lease: whoever has the next one reads everything again that is pending.

use super::front::Front;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::{
    Fence, Position,
    outbox::{KeyHash, LANES, Lane, Progress},
};

/// What is known about rows while a lease lasts.
pub(super) struct Rows {
    /// The lease; rows that were read under another are not these.
    fence: Fence,
    last_id: i64,
    read: BTreeMap<Position, ReadRow>,
    /// Rows that are no messages: they will be set aside as dead.
    poison: BTreeMap<Position, Poison>,
    /// Those among what was set aside whose rows are not pending any more.
    vanished: BTreeSet<Position>,
    /// Those among what was set aside that the mapping's filter leaves out now: nobody takes them.
    unchosen: BTreeSet<Position>,
    /// From where on rows are read.
    pub front: Front,
}

/// A row that was handed out.
pub(super) struct ReadRow {
    pub row_key: String,
    pub lane: Lane,
    pub topic: String,
}

/// A row that is no message.
#[derive(Clone, Debug)]
pub(super) struct Poison {
    /// `None` if it was set aside before.
    pub row_key: Option<String>,
    pub topic: String,
    pub key: Option<KeyHash>,
    pub sink: String,
    pub attempts: u32,
    pub reason: String,
}

impl Default for Rows {
    fn default() -> Self {
        Self::new(Fence::NOBODY, 0)
    }
}

impl Rows {
    fn new(fence: Fence, last_id: i64) -> Self {
        let (read, poison, vanished, unchosen, front) = Default::default();
        Self { fence, last_id, read, poison, vanished, unchosen, front }
    }

    /// A new lease: whatever was read before is read again.
    pub(super) fn begin(&mut self, fence: Fence, last_id: i64) {
        *self = Self::new(fence, self.last_id.max(last_id));
    }

    pub(super) fn fence(&self) -> Fence {
        self.fence
    }

    pub(super) fn last_id(&self) -> i64 {
        self.last_id
    }

    pub(super) fn next_id(&mut self) -> Position {
        self.last_id += 1;
        Position(self.last_id)
    }

    pub(super) fn add(&mut self, id: Position, row: ReadRow) {
        self.read.insert(id, row);
    }

    pub(super) fn add_poison(&mut self, id: Position, poison: Poison) {
        self.poison.insert(id, poison);
    }

    pub(super) fn add_vanished(&mut self, id: Position) {
        self.vanished.insert(id);
    }

    pub(super) fn add_unchosen(&mut self, id: Position) {
        self.unchosen.insert(id);
    }

    /// The keys of all rows that must not be read again.
    pub(super) fn row_keys(&self) -> Vec<String> {
        let poison = self.poison.values().filter_map(|it| it.row_key.clone());
        self.read.values().map(|row| row.row_key.clone()).chain(poison).collect()
    }

    /// What was set aside and is being dealt with here.
    pub(super) fn aside(&self) -> impl Iterator<Item = Position> {
        self.vanished.iter().chain(&self.unchosen).chain(self.poison.keys()).copied()
    }

    pub(super) fn row_key(&self, id: Position) -> Option<&str> {
        self.read.get(&id).map(|row| row.row_key.as_str())
    }

    /// What a settlement must write about rows that are no messages.
    pub(super) fn poison(&self) -> Vec<(Position, Poison)> {
        self.poison.iter().map(|(id, poison)| (*id, poison.clone())).collect()
    }

    pub(super) fn vanished(&self) -> Vec<Position> {
        self.vanished.iter().copied().collect()
    }

    pub(super) fn unchosen(&self) -> Vec<Position> {
        self.unchosen.iter().copied().collect()
    }

    /// Rows up to the cursors that apply to them.
    pub(super) fn passed(&self, lanes: &[Progress]) -> Vec<Position> {
        let by_lane: BTreeMap<Lane, &Progress> = lanes.iter().map(|it| (it.lane, it)).collect();
        let passed = |(id, row): &(&Position, &ReadRow)| {
            let Some(progress) = by_lane.get(&row.lane) else { return false };
            let lag = progress.lags.iter().find(|lag| lag.topics.contains(&row.topic));
            id.0 <= lag.map_or(progress.cursor, |lag| lag.cursor)
        };
        self.read.iter().filter(passed).map(|(id, _)| *id).collect()
    }

    /// These are stored now, one way or the other.
    pub(super) fn forget<'a>(&mut self, ids: impl IntoIterator<Item = &'a Position>) {
        for id in ids {
            self.read.remove(id);
            self.poison.remove(id);
            self.vanished.remove(id);
            self.unchosen.remove(id);
        }
    }
}

/// The lane of a message. Each key has its own; those without are spread.
pub(super) fn lane(key: Option<KeyHash>, id: Position) -> Lane {
    let bucket = key.map_or(id.0, |key| key.0) as u64;
    Lane((bucket % u64::from(LANES)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::outbox::{Choice, Lag, Pattern, Topics};

    fn rows(topics: &[&str]) -> Rows {
        let mut rows = Rows::default();
        rows.begin(Fence(1), 10);
        for topic in topics {
            let id = rows.next_id();
            let (row_key, topic) = (format!("row {id}"), (*topic).to_owned());
            rows.add(id, ReadRow { row_key, lane: Lane(0), topic });
        }
        rows
    }

    fn progress(cursor: i64, lags: Vec<Lag>) -> Progress {
        Progress { lane: Lane(0), fence: Fence(1), cursor, lags, before: None }
    }

    #[test]
    fn a_row_is_passed_by_the_cursor_that_applies_to_its_topic() {
        let rows = rows(&["fast", "slow", "fast"]);
        let takes = Pattern("slow".to_owned());
        let topics = Topics(vec![Choice { takes, unless: Vec::new() }]);
        let lag = Lag { sink: "s".to_owned(), topics, cursor: 11 };
        assert_eq!(rows.passed(&[progress(13, vec![lag])]), [Position(11), Position(13)]);
        assert_eq!(rows.passed(&[progress(12, vec![])]), [Position(11), Position(12)]);
        assert_eq!(rows.passed(&[]), []);
    }

    #[test]
    fn a_new_lease_forgets_rows_but_never_gives_an_id_twice() {
        let mut rows = rows(&["a", "b"]);
        rows.begin(Fence(2), 5);
        assert!(rows.row_keys().is_empty());
        assert_eq!(rows.next_id(), Position(13));
    }
}
