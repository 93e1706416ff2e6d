//! How far each lane is: pure bookkeeping of cursors.
//!
//! Messages of a lane may be done in any order; its cursor moves up to the first that is not. A sink that
//! falls behind gets a cursor of its own in every lane, and the lane goes on without it.

use super::plan::Line;
use std::collections::{BTreeMap, HashSet, VecDeque};
use tidegate_core::{
    Fence, Position,
    outbox::{Before, Gained, Lag, Lane, LaneLease, Progress},
};
use tokio::time::Instant;

/// One of the ways in which messages are read, by its place among the lines of the plan.
pub(super) type LineNumber = usize;

/// A lane that this relay holds.
pub(super) struct LaneState {
    pub fence: Fence,
    /// Everything up to here was read, but for lines that lag.
    read: i64,
    lines: Vec<LineState>,
    /// What was done under other routes.
    before: Option<Before>,
    /// What the store has.
    stored: (i64, Vec<Lag>, Option<Before>),
    /// Set aside before this relay had the lane, beyond a cursor.
    aside: HashSet<Position>,
    pub leaving: Leaving,
}

/// Whether a lane will be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    No,
    /// No more is read from it, since then.
    Soon(Instant),
    /// It took too long: what waits is set aside.
    Now,
}

#[derive(Default)]
struct LineState {
    /// How far it was read, if it lags.
    lag_read: Option<i64>,
    /// What was read and is neither done nor set aside, in order, with some that are in between.
    open: VecDeque<(i64, bool)>,
    /// The last that was done or set aside.
    done_to: i64,
}

impl LineState {
    /// Everything up to here is done or set aside.
    fn cursor(&self, read: i64) -> i64 {
        self.open.front().map_or(self.lag_read.unwrap_or(read), |(first, _)| first - 1)
    }
}

impl LaneState {
    /// A line that lagged goes on as it was. If one of other routes did, all begin where it was, at the
    /// latest.
    pub fn new(gained: &Gained, lines: &[Line]) -> Self {
        let Gained { cursor, lags, before, .. } = gained.clone();
        let stored = (cursor, lags.clone(), before.clone());
        let is_known = |lag: &Lag| lines.iter().any(|line| line.topics == lag.topics);
        let start = lags.iter().filter(|lag| !is_known(lag)).map(|lag| lag.cursor).min();
        let line = |line: &Line| {
            let same = lags.iter().find(|lag| lag.topics == line.topics).map(|lag| lag.cursor);
            let lag_read = same.into_iter().chain(start.map(|it| it.min(cursor))).min();
            LineState { lag_read, ..LineState::default() }
        };
        let lines = lines.iter().map(line).collect();
        let before = match start {
            None => before,
            Some(_) => Some(Before::new(cursor, lags, before)),
        };
        Self {
            fence: gained.lease.fence,
            read: cursor,
            lines,
            before,
            stored,
            aside: gained.aside.iter().copied().collect(),
            leaving: Leaving::No,
        }
    }

    /// The lines that lag.
    pub fn lags(&self) -> impl Iterator<Item = LineNumber> {
        let lags = self.lines.iter().enumerate().filter(|(_, line)| line.lag_read.is_some());
        lags.map(|(line, _)| line)
    }

    /// Whether a message was done under other routes.
    pub fn was_done(&self, topic: &str, position: Position) -> bool {
        self.before.as_ref().is_some_and(|before| !before.left(topic, position))
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

    /// A message was read, belongs to a line, and is to be acted on.
    pub fn open(&mut self, line: LineNumber, position: Position) {
        self.lines[line].open.push_back((position.0, false));
    }

    /// Whether a message was set aside before this relay had the lane.
    pub fn was_set_aside(&mut self, position: Position) -> bool {
        !self.aside.is_empty() && self.aside.remove(&position)
    }

    /// A message that was opened is done, or set aside.
    pub fn close(&mut self, line: LineNumber, position: Position) {
        self.done(line, position);
        let open = &mut self.lines[line].open;
        if let Ok(at) = open.binary_search_by_key(&position.0, |(at, _)| *at) {
            open[at].1 = true;
        }
        while open.front().is_some_and(|(_, closed)| *closed) {
            open.pop_front();
        }
    }

    /// A message was done, whether it was opened or set aside before.
    pub fn done(&mut self, line: LineNumber, position: Position) {
        let done_to = &mut self.lines[line].done_to;
        *done_to = (*done_to).max(position.0);
    }

    /// Whether a message that is not done lies before one of its line that is: if it stays where it is,
    /// that one will be repeated.
    pub fn is_gap(&self, line: LineNumber, position: Position) -> bool {
        position.0 < self.lines[line].done_to
    }

    /// No more comes: lines behind which others have done something get cursors of their own.
    pub fn part(&mut self) {
        for line in 0..self.lines.len() {
            let cursor = self.lines[line].cursor(self.read);
            let others = self.lines.iter().enumerate().filter(|(other, _)| *other != line);
            if others.into_iter().any(|(_, other)| other.done_to > cursor) {
                self.detach(line);
            }
        }
    }

    /// From now on a line is read apart from the rest.
    pub fn detach(&mut self, line: LineNumber) {
        self.lines[line].lag_read.get_or_insert(self.read);
    }

    /// A line that has caught up is read with the rest again.
    pub fn attach(&mut self, line: LineNumber) {
        self.lines[line].lag_read = None;
    }

    /// Whether a line that lags is as far as the rest. If it was read further, the rest would be read
    /// twice; if it has something open before the lane's cursor, that would have to go back.
    pub fn has_caught_up(&self, line: LineNumber) -> bool {
        let state = &self.lines[line];
        state.lag_read.is_none_or(|read| read == self.read && state.cursor(read) >= self.cursor())
    }

    /// How many messages of a line its cursor may be behind.
    pub fn open_at(&self, line: LineNumber) -> usize {
        self.lines[line].open.len()
    }

    /// How many of its messages are neither done nor set aside.
    pub fn open_count(&self) -> usize {
        self.lines.iter().map(|line| line.open.len()).sum()
    }

    fn cursor(&self) -> i64 {
        let attached = self.lines.iter().filter(|line| line.lag_read.is_none());
        attached.map(|line| line.cursor(self.read)).min().unwrap_or(self.read)
    }

    /// How far it is now.
    pub fn progress(&self, lane: Lane, names: &[Line]) -> Progress {
        let lagging = self.lines.iter().zip(names).filter(|(line, _)| line.lag_read.is_some());
        let lags = lagging.map(|(line, Line { name, topics })| Lag {
            sink: name.clone(),
            topics: topics.clone(),
            cursor: line.cursor(self.read),
        });
        let (cursor, lags) = (self.cursor(), lags.collect::<Vec<_>>());
        let start = lags.iter().map(|lag| lag.cursor).fold(cursor, i64::min);
        let before = self.before.as_ref().filter(|before| before.reach() > start).cloned();
        Progress { lane, fence: self.fence, cursor, lags, before }
    }

    /// Whether the store does not know this yet.
    pub fn is_news(&self, progress: &Progress) -> bool {
        let Progress { cursor, lags, before, .. } = progress;
        (&self.stored.0, &self.stored.1, &self.stored.2) != (cursor, lags, before)
    }

    /// The store knows this now.
    pub fn stored(&mut self, progress: Progress) {
        self.before.clone_from(&progress.before);
        self.stored = (progress.cursor, progress.lags, progress.before);
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
    use tidegate_core::outbox::Topics;

    fn lines() -> [Line; 2] {
        ["a", "b"].map(|name| Line { name: name.to_owned(), topics: Topics::default() })
    }

    fn lane() -> LaneState {
        let lease = LaneLease { lane: Lane(3), fence: Fence(1) };
        let (lags, before, held, aside) = Default::default();
        LaneState::new(&Gained { lease, cursor: 10, lags, before, held, aside }, &lines())
    }

    fn cursors(lane: &LaneState) -> (i64, Vec<i64>) {
        let progress = lane.progress(Lane(3), &lines());
        (progress.cursor, progress.lags.iter().map(|lag| lag.cursor).collect())
    }

    #[test]
    fn the_cursor_stops_before_the_first_that_is_not_done() {
        let mut lane = lane();
        [11, 12, 15].into_iter().for_each(|id| lane.open(0, Position(id)));
        lane.open(1, Position(13));
        lane.read_to(None, 20);
        assert_eq!(cursors(&lane), (10, vec![]));
        lane.close(0, Position(12));
        lane.close(0, Position(11));
        assert_eq!(cursors(&lane), (12, vec![]));
        lane.close(1, Position(13));
        assert_eq!(cursors(&lane), (14, vec![]));
        lane.close(0, Position(15));
        assert_eq!(cursors(&lane), (20, vec![]));
        assert_eq!(lane.open_count(), 0);
    }

    #[test]
    fn a_line_that_lags_has_a_cursor_of_its_own() {
        let mut lane = lane();
        lane.open(0, Position(11));
        lane.open(1, Position(12));
        lane.read_to(None, 15);
        lane.detach(1);
        lane.close(0, Position(11));
        assert_eq!(cursors(&lane), (15, vec![11]));
        lane.read_to(None, 30);
        assert!(!lane.has_caught_up(1));
        lane.close(1, Position(12));
        assert_eq!((cursors(&lane), lane.read_from(Some(1))), ((30, vec![15]), 15));
        lane.read_to(Some(1), 30);
        assert!(lane.has_caught_up(1));
        lane.attach(1);
        assert_eq!(cursors(&lane), (30, vec![]));
    }
}
