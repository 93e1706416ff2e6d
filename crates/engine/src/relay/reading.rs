//! What to read next.

use super::{
    flow::Flow,
    lanes::{LaneState, Leaving, LineNumber},
};
use std::time::Duration;
use tidegate_core::outbox::{ClaimRequest, Epoch, Lane, LaneLease, Place, Reader};

/// What may wait in memory for one sink: enough to keep it busy while the next is read.
pub(super) const MAX_QUEUED: usize = 16_384;
pub(super) const MAX_QUEUED_BYTES: usize = 32 << 20;
/// What is read at once: little at first, so that sinks soon have something to do.
pub(super) const FIRST_READ: usize = 512;
const MAX_READ: usize = 4_096;
const MAX_READ_BYTES: usize = 8 << 20;
/// Messages of those set aside that may be on their way to one sink.
const MAX_UNDER_WAY: usize = 4_096;
/// Messages that are to be set aside: no more are read until the store has them.
const MAX_ASIDE: usize = 16_384;
const MAX_DUE: usize = 1_000;
/// A sink whose messages wait longer than this goes its own way, so that the others' can be settled.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// What a request asked for.
pub(super) struct Asked {
    /// The epoch of the store in which it asked.
    pub epoch: Epoch,
    /// For whom each of its readers reads: a line, or the lanes as a whole.
    pub lines: Vec<Option<LineNumber>>,
    /// The lanes that are read.
    pub lanes: Vec<LaneLease>,
    /// Nothing is left out.
    pub whole: bool,
}

impl Flow {
    /// What to read next; `waits` tells for each sink how long its oldest message has waited.
    pub fn ask(&mut self, waits: &[Duration]) -> Option<(ClaimRequest, Asked)> {
        let slow: Vec<bool> =
            (0..self.queues.len()).map(|sink| self.is_slow(sink, waits)).collect();
        self.part_ways(&slow);
        self.touched.clear();
        let closed: Vec<bool> = (0..self.queues.len()).map(|sink| self.is_closed(sink)).collect();
        let full: Vec<bool> = (0..self.queues.len()).map(|sink| self.is_full(sink)).collect();
        let lines = match self.is_behind_with_settling() {
            true => Vec::new(),
            false => self.lines_to_read(&full),
        };
        if lines.is_empty() && !closed.contains(&false) || self.lanes.is_empty() {
            return None;
        }
        let staying = self.lanes.iter().filter(|(_, state)| state.leaving == Leaving::No);
        let lease =
            |(lane, state): (&Lane, &LaneState)| LaneLease { lane: *lane, fence: state.fence };
        let lanes: Vec<LaneLease> = staying.map(lease).collect();
        let read_apart = (0..self.lines.len()).filter(|it| self.lagging[*it] && !self.is_gone(*it));
        let whole = lines.len() == read_apart.count() + 1
            && (0..closed.len()).all(|sink| !closed[sink] || self.is_gone(sink))
            && lanes.len() == self.lanes.len();
        let names = self.lines.iter().zip(closed).filter(|(_, closed)| *closed);
        let request = ClaimRequest {
            epoch: self.epoch().clone(),
            readers: lines.iter().map(|line| self.reader(*line)).collect(),
            lanes: lanes.iter().map(|lease| lease.lane).collect(),
            under_way: self.under_way.keys().copied().collect(),
            closed: names.map(|(line, _)| line.name.clone()).collect(),
            most_due: MAX_DUE,
            most_bytes: MAX_READ_BYTES,
        };
        let epoch = request.epoch.clone();
        Some((request, Asked { epoch, lines, lanes, whole }))
    }

    /// The lanes as a whole, unless a sink that is read with them takes no more; and the lines that lag,
    /// unless their sinks do not.
    fn lines_to_read(&self, full: &[bool]) -> Vec<Option<LineNumber>> {
        let is_full = |line: LineNumber| full.get(line).copied().unwrap_or(false);
        let (lagging, attached): (Vec<LineNumber>, Vec<LineNumber>) =
            (0..self.lines.len()).partition(|line| self.lagging[*line]);
        let whole = (!attached.into_iter().any(is_full)).then_some(None);
        whole.into_iter().chain(lagging.into_iter().filter(|it| !is_full(*it)).map(Some)).collect()
    }

    fn reader(&self, line: Option<LineNumber>) -> Reader {
        let topics = |line: LineNumber| self.lines[line].topics.clone();
        let apart = (0..self.lines.len()).filter(|it| line.is_none() && self.lagging[*it]);
        let place =
            |(lane, state): (&_, &LaneState)| Place { lane: *lane, after: state.read_from(line) };
        let staying = self.lanes.iter().filter(|(_, state)| state.leaving == Leaving::No);
        Reader {
            name: line.map(|line| self.lines[line].name.clone()).unwrap_or_default(),
            takes: line.map(topics),
            leaves: apart.map(topics).collect(),
            places: staying.map(place).collect(),
            most: self.read_most,
        }
    }

    /// Reads much at once while there is more to read.
    pub fn learn_size(&mut self, more: bool) {
        self.read_most = if more { MAX_READ } else { FIRST_READ };
    }

    /// Whether the store does not keep up with what is set aside.
    fn is_behind_with_settling(&self) -> bool {
        let settling = self.settling.iter().flat_map(|settling| &settling.aside);
        let (mut messages, mut bytes) = (0, 0);
        for set in self.aside.iter().chain(settling) {
            messages += 1;
            bytes += set.topic.len();
        }
        messages >= MAX_ASIDE || bytes >= MAX_QUEUED_BYTES
    }

    /// Whether a sink takes nothing of what was set aside.
    fn is_closed(&self, sink: usize) -> bool {
        let under_way = self.under_way.values().filter(|it| it.sink == Some(sink)).count();
        self.is_full(sink) || under_way >= MAX_UNDER_WAY
    }

    fn is_full(&self, sink: usize) -> bool {
        let (messages, bytes) = self.queues[sink].load();
        messages >= MAX_QUEUED || bytes >= MAX_QUEUED_BYTES || self.is_gone(sink)
    }

    /// Whether a line's sink takes nothing any more.
    fn is_gone(&self, line: LineNumber) -> bool {
        self.gone.get(line).copied().unwrap_or(false)
    }

    fn is_slow(&self, sink: usize, waits: &[Duration]) -> bool {
        self.is_full(sink) || waits.get(sink).is_some_and(|wait| *wait > PATIENCE)
    }

    /// Sinks that hold up others go their own way; those that have caught up come back.
    fn part_ways(&mut self, slow: &[bool]) {
        let attached = |flow: &Self, sink: usize| !flow.lagging[sink];
        let somebody_waits = (0..slow.len()).any(|sink| attached(self, sink) && !slow[sink]);
        for (sink, slow) in slow.iter().enumerate() {
            if *slow && (somebody_waits || self.is_gone(sink)) && attached(self, sink) {
                let name = &self.lines[sink].name;
                match self.is_gone(sink) {
                    true => tracing::warn!("{name} takes nothing any more: its messages wait"),
                    false => tracing::info!("{name} is slow: its messages are read apart"),
                }
                self.detach(sink);
            }
        }
        let caught_up = |flow: &Self, line: usize| {
            !slow.get(line).copied().unwrap_or(false)
                && flow.lanes.values().all(|lane| lane.has_caught_up(line))
        };
        let lagging = (0..self.lines.len()).filter(|line| self.lagging[*line]);
        let back: Vec<LineNumber> = lagging.filter(|line| caught_up(self, *line)).collect();
        for line in back {
            self.lagging[line] = false;
            self.lanes.values_mut().for_each(|lane| lane.attach(line));
        }
    }
}
