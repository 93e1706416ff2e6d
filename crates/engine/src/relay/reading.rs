//! What to read next.

use super::{
    flow::Flow,
    lanes::{LaneState, LineNumber},
};
use std::time::Duration;
use tidegate_core::outbox::{ClaimRequest, Lane, LaneLease, Place, Reader};

/// What may wait in memory for one sink: enough to keep it busy while the next is read.
const MAX_QUEUED: usize = 16_384;
const MAX_QUEUED_BYTES: usize = 32 << 20;
/// What is read at once.
const MAX_READ: usize = 4_096;
const MAX_READ_BYTES: usize = 8 << 20;
/// Messages of those set aside that may be on their way.
const MAX_UNDER_WAY: usize = 4_096;
const MAX_DUE: usize = 1_000;
/// A sink whose messages wait longer than this goes its own way, so that the others' can be settled.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// A request, and for whom each of its readers reads.
pub(super) struct Asking {
    pub request: ClaimRequest,
    pub lines: Vec<Option<LineNumber>>,
    /// The lanes that are read.
    pub lanes: Vec<LaneLease>,
}

impl Flow {
    /// What to read next; `waits` tells for each sink how long its oldest message has waited.
    pub fn ask(&mut self, waits: &[Duration]) -> Option<Asking> {
        let slow: Vec<bool> =
            (0..self.queues.len()).map(|sink| self.is_slow(sink, waits)).collect();
        self.part_ways(&slow);
        let full: Vec<bool> = (0..self.queues.len()).map(|sink| self.is_full(sink)).collect();
        let mut readers = Vec::new();
        let mut lines = Vec::new();
        let attached = (0..full.len()).filter(|sink| !self.lagging[*sink]);
        if !attached.into_iter().any(|sink| full[sink]) && !self.lanes.is_empty() {
            readers.push(self.reader(None));
            lines.push(None);
        }
        for line in (0..self.lines.len()).filter(|line| self.lagging[*line]) {
            // What lagged under another plan may go anywhere.
            let stuck = full.get(line).copied().unwrap_or_else(|| full.contains(&true));
            if !stuck {
                readers.push(self.reader(Some(line)));
                lines.push(Some(line));
            }
        }
        let most_due = MAX_UNDER_WAY.saturating_sub(self.under_way.len()).min(MAX_DUE);
        if readers.is_empty() && most_due == 0 || self.lanes.is_empty() {
            return None;
        }
        let staying = self.lanes.iter().filter(|(_, state)| !state.leaving);
        let lease =
            |(lane, state): (&Lane, &LaneState)| LaneLease { lane: *lane, fence: state.fence };
        let lanes: Vec<LaneLease> = staying.map(lease).collect();
        let request = ClaimRequest {
            readers,
            lanes: lanes.iter().map(|lease| lease.lane).collect(),
            under_way: self.under_way.keys().copied().collect(),
            closed: (0..full.len())
                .filter(|it| full[*it])
                .map(|it| self.lines[it].0.clone())
                .collect(),
            most_due,
            most_bytes: MAX_READ_BYTES,
        };
        Some(Asking { request, lines, lanes })
    }

    fn reader(&self, line: Option<LineNumber>) -> Reader {
        let lags = |line: &LineNumber| self.lagging[*line];
        let topics = |line: LineNumber| self.lines[line].1.clone();
        // Of two that lag and want the same, the one that is left over from another plan reads it.
        let later: Vec<LineNumber> = match line {
            None => (0..self.lines.len()).filter(lags).collect(),
            Some(line) => (line + 1..self.lines.len()).filter(lags).collect(),
        };
        let place =
            |(lane, state): (&_, &LaneState)| Place { lane: *lane, after: state.read_from(line) };
        let staying = self.lanes.iter().filter(|(_, state)| !state.leaving);
        Reader {
            name: line.map(|line| self.lines[line].0.clone()).unwrap_or_default(),
            takes: line.map(topics),
            leaves: later.into_iter().map(topics).collect(),
            places: staying.map(place).collect(),
            most: MAX_READ,
        }
    }

    fn is_full(&self, sink: usize) -> bool {
        let (messages, bytes) = self.queues[sink].load();
        messages >= MAX_QUEUED || bytes >= MAX_QUEUED_BYTES
    }

    fn is_slow(&self, sink: usize, waits: &[Duration]) -> bool {
        self.is_full(sink) || waits.get(sink).is_some_and(|wait| *wait > PATIENCE)
    }

    /// Sinks that hold up others go their own way; those that have caught up come back.
    fn part_ways(&mut self, slow: &[bool]) {
        let attached = |flow: &Self, sink: usize| !flow.lagging[sink];
        let somebody_waits = (0..slow.len()).any(|sink| attached(self, sink) && !slow[sink]);
        for (sink, slow) in slow.iter().enumerate() {
            if *slow && somebody_waits && attached(self, sink) {
                tracing::info!("{} is slow: its messages are read apart", self.lines[sink].0);
                self.detach(sink);
            }
        }
        let caught_up = |flow: &Self, line: usize| {
            !slow.get(line).copied().unwrap_or(false)
                && flow.lanes.values().all(|lane| lane.has_caught_up(line))
        };
        let lagging: Vec<LineNumber> =
            (0..self.lines.len()).filter(|line| self.lagging[*line]).collect();
        let left_over = lagging.iter().any(|line| *line >= slow.len());
        let back: Vec<LineNumber> =
            lagging.iter().copied().filter(|line| caught_up(self, *line)).collect();
        // What overlaps comes back together, or it would be read twice.
        if left_over && back.len() < lagging.len() {
            return;
        }
        for line in back {
            self.lagging[line] = false;
            self.lanes.values_mut().for_each(|lane| lane.attach(line));
        }
    }
}
