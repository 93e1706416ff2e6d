//! Lanes that other relays should have.

use super::{
    flow::{Doing, Flow},
    lanes::{LaneState, Leaving},
    queue::Queued,
    reading::PATIENCE,
};
use std::collections::HashSet;
use tidegate_core::outbox::{Lane, LaneLease};
use tokio::time::Instant;

impl Flow {
    /// When a lane that is to be given back will have taken too long.
    pub fn next_eviction(&self) -> Option<Instant> {
        let since = self.lanes.values().filter_map(|lane| match lane.leaving {
            Leaving::Soon(since) => Some(since + PATIENCE),
            Leaving::No | Leaving::Now => None,
        });
        since.min()
    }

    /// A sink may keep messages for long. What waits in lanes that should have been given back is set aside
    /// for whoever gets them. Returns whether there are such lanes: what waits outside is to come back.
    pub fn evict(&mut self, now: Instant) -> bool {
        let is_late = |state: &LaneState| match state.leaving {
            Leaving::Soon(since) => now >= since + PATIENCE,
            Leaving::No | Leaving::Now => false,
        };
        let late = self.lanes.iter_mut().filter(|(_, state)| is_late(state));
        let late = late.map(|(_, state)| state.leaving = Leaving::Now);
        let late = late.count() > 0;
        if late {
            self.clear_out();
        }
        late
    }

    /// Sets aside what waits in lanes that should be gone. What follows a message that is under way stays
    /// until that is back: it must not become the first of its key.
    pub fn clear_out(&mut self) {
        let late = self.lanes.iter().filter(|(_, state)| state.leaving == Leaving::Now);
        let late: HashSet<Lane> = late.map(|(lane, _)| *lane).collect();
        if late.is_empty() {
            return;
        }
        for sink in 0..self.queues.len() {
            let out = self.queues[sink].take_lanes(|lane| late.contains(&lane), true);
            out.into_iter().for_each(|queued| self.wait_behind(queued));
        }
    }

    /// Nothing more will be sent. What is done is not to be repeated for the sake of what is not: that is
    /// set aside, or its line gets a cursor of its own.
    pub fn wind_up(&mut self) {
        let queues = self.queues.iter_mut();
        let left: Vec<Queued> =
            queues.flat_map(|queue| queue.take_lanes(|_| true, false)).collect();
        for queued in left {
            let state = self.lanes.get(&queued.message.lane);
            if state.is_some_and(|state| state.is_gap(queued.line, queued.position())) {
                self.wait_behind(queued);
            }
        }
        self.lanes.values_mut().for_each(LaneState::part);
    }

    /// Lanes that are to be given back, and have nothing on its way. They are forgotten.
    pub fn leave(&mut self) -> Vec<LaneLease> {
        let settling = self.settling.iter().flat_map(|it| &it.lanes).map(|it| it.lane);
        let aside = self.aside.iter().map(|set| set.lane);
        let done = self.done.iter().map(|(lane, _)| *lane);
        // What waits for its lane to be read is not in memory.
        let again = self.under_way.values().filter(|it| it.what != Doing::Read).map(|it| it.lane);
        let busy: HashSet<Lane> = settling.chain(aside).chain(done).chain(again).collect();
        let ready = |lane: &Lane, state: &LaneState| {
            state.leaving != Leaving::No
                && state.open_count() == 0
                && !busy.contains(lane)
                && !state.is_news(&state.progress(*lane, &self.lines))
        };
        let leaving: Vec<Lane> =
            self.lanes.iter().filter(|(lane, it)| ready(lane, it)).map(|(lane, _)| *lane).collect();
        let forget = |lane: Lane| {
            self.held.lose(lane);
            self.lanes.remove(&lane).map(|state| LaneLease { lane, fence: state.fence })
        };
        leaving.into_iter().filter_map(forget).collect()
    }
}
