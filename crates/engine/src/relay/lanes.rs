//! How far each lane is: pure bookkeeping of cursors.
//!
//! Messages of a lane may be done in any order; its cursor moves up to the first that is not. A sink that
//! falls behind gets a cursor of its own in every lane, and the lane goes on without it.

use std::collections::{BTreeMap, HashSet, VecDeque};
use tidegate_core::{
    Fence, MessageId,
    outbox::{Gained, Lag, Lane, LaneLease, Progress, Topics},
};

/// One of the ways in which messages are read: the lines of sinks, by their place in the relay's list.
pub(super) type LineNumber = usize;

/// A lane that this relay holds.
pub(super) struct LaneState {
    pub fence: Fence,
    /// Everything up to here was read, but for lines that lag.
    read: i64,
    lines: Vec<LineState>,
    /// What the store has.
    stored: (i64, Vec<Lag>),
    /// Set aside before this relay had the lane, beyond a cursor.
    aside: HashSet<MessageId>,
    /// No more is read from it: it will be given back.
    pub leaving: bool,
}

#[derive(Default)]
struct LineState {
    /// How far it was read, if it lags.
    lag_read: Option<i64>,
    /// What was read and is neither done nor set aside, in order, with some that are in between.
    open: VecDeque<(i64, bool)>,
}

impl LineState {
    /// Everything up to here is done or set aside.
    fn cursor(&self, read: i64) -> i64 {
        self.open.front().map_or(self.lag_read.unwrap_or(read), |(first, _)| first - 1)
    }
}

impl LaneState {
    pub fn new(gained: &Gained, lines: usize) -> Self {
        Self {
            fence: gained.lease.fence,
            read: gained.cursor,
            lines: (0..lines).map(|_| LineState::default()).collect(),
            stored: (gained.cursor, gained.lags.clone()),
            aside: gained.aside.iter().copied().collect(),
            leaving: false,
        }
    }

    pub fn grow(&mut self, lines: usize) {
        self.lines.resize_with(lines, LineState::default);
    }

    /// Where a line that lags goes on, or the lane as a whole.
    pub fn read_from(&self, line: Option<LineNumber>) -> i64 {
        line.map_or(self.read, |line| self.lines[line].lag_read.unwrap_or(self.read))
    }

    /// Everything up to `to` was read now.
    pub fn read_to(&mut self, line: Option<LineNumber>, to: i64) {
        let read = match line {
            None => &mut self.read,
            Some(line) => match &mut self.lines[line].lag_read {
                Some(read) => read,
                None => return,
            },
        };
        *read = (*read).max(to);
    }

    /// A message was read, and belongs to a line. Returns whether it is to be acted on.
    pub fn open(&mut self, line: LineNumber, id: MessageId) {
        self.lines[line].open.push_back((id.0, false));
    }

    /// Whether a message was set aside before this relay had the lane.
    pub fn was_set_aside(&mut self, id: MessageId) -> bool {
        !self.aside.is_empty() && self.aside.remove(&id)
    }

    /// A message that was opened is done, or set aside.
    pub fn close(&mut self, line: LineNumber, id: MessageId) {
        let open = &mut self.lines[line].open;
        if let Ok(at) = open.binary_search_by_key(&id.0, |(id, _)| *id) {
            open[at].1 = true;
        }
        while open.front().is_some_and(|(_, closed)| *closed) {
            open.pop_front();
        }
    }

    /// From now on a line is read apart from the rest.
    pub fn detach(&mut self, line: LineNumber, from: Option<i64>) {
        let read = self.read;
        self.lines[line].lag_read.get_or_insert(from.unwrap_or(read));
    }

    /// A line that has caught up is read with the rest again.
    pub fn attach(&mut self, line: LineNumber) {
        self.lines[line].lag_read = None;
    }

    /// Whether a line that lags was read as far as the rest, and no further: beyond, the rest would be
    /// read twice.
    pub fn has_caught_up(&self, line: LineNumber) -> bool {
        self.lines[line].lag_read.is_none_or(|read| read == self.read)
    }

    /// Whether nothing of it is being acted on.
    pub fn is_at_rest(&self) -> bool {
        self.lines.iter().all(|line| line.open.is_empty())
    }

    fn cursor(&self) -> i64 {
        let attached = self.lines.iter().filter(|line| line.lag_read.is_none());
        attached.map(|line| line.cursor(self.read)).min().unwrap_or(self.read)
    }

    /// How far it is now.
    pub fn progress(&self, lane: Lane, names: &[(String, Topics)]) -> Progress {
        let lagging = self.lines.iter().zip(names).filter(|(line, _)| line.lag_read.is_some());
        let lags = lagging.map(|(line, (sink, topics))| Lag {
            sink: sink.clone(),
            topics: topics.clone(),
            cursor: line.cursor(self.read),
        });
        Progress { lane, fence: self.fence, cursor: self.cursor(), lags: lags.collect() }
    }

    /// Whether the store does not know this yet.
    pub fn is_news(&self, progress: &Progress) -> bool {
        self.stored.0 != progress.cursor || self.stored.1 != progress.lags
    }

    /// The store knows this now.
    pub fn stored(&mut self, progress: Progress) {
        self.stored = (progress.cursor, progress.lags);
    }
}

/// The lanes of a relay.
pub(super) type Lanes = BTreeMap<Lane, LaneState>;

/// The rights to them.
pub(super) fn leases(lanes: &Lanes) -> Vec<LaneLease> {
    lanes.iter().map(|(lane, state)| LaneLease { lane: *lane, fence: state.fence }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane() -> LaneState {
        let lease = LaneLease { lane: Lane(3), fence: Fence(1) };
        let gained = Gained { lease, cursor: 10, lags: vec![], held: vec![], aside: vec![] };
        LaneState::new(&gained, 2)
    }

    fn cursors(lane: &LaneState) -> (i64, Vec<i64>) {
        let names = ["a", "b"].map(|name| (name.to_owned(), Topics::default()));
        let progress = lane.progress(Lane(3), &names);
        (progress.cursor, progress.lags.iter().map(|lag| lag.cursor).collect())
    }

    #[test]
    fn the_cursor_stops_before_the_first_that_is_not_done() {
        let mut lane = lane();
        [11, 12, 15].into_iter().for_each(|id| lane.open(0, MessageId(id)));
        lane.open(1, MessageId(13));
        lane.read_to(None, 20);
        assert_eq!(cursors(&lane), (10, vec![]));
        lane.close(0, MessageId(12));
        lane.close(0, MessageId(11));
        assert_eq!(cursors(&lane), (12, vec![]));
        lane.close(1, MessageId(13));
        assert_eq!(cursors(&lane), (14, vec![]));
        lane.close(0, MessageId(15));
        assert_eq!(cursors(&lane), (20, vec![]));
        assert!(lane.is_at_rest());
    }

    #[test]
    fn a_line_that_lags_has_a_cursor_of_its_own() {
        let mut lane = lane();
        lane.open(0, MessageId(11));
        lane.open(1, MessageId(12));
        lane.read_to(None, 15);
        lane.detach(1, None);
        lane.close(0, MessageId(11));
        assert_eq!(cursors(&lane), (15, vec![11]));
        lane.read_to(None, 30);
        assert!(!lane.has_caught_up(1));
        lane.close(1, MessageId(12));
        assert_eq!((cursors(&lane), lane.read_from(Some(1))), ((30, vec![15]), 15));
        lane.read_to(Some(1), 30);
        assert!(lane.has_caught_up(1));
        lane.attach(1);
        assert_eq!(cursors(&lane), (30, vec![]));
    }
}
