//! All that a relay knows: what it has read, what is on its way, what is to be settled. Pure: it does no
//! I/O, and the loop carries out what it decides.

use super::{
    held::Held,
    lanes::{LaneState, Lanes, LineNumber, leases},
    plan::Plan,
    queue::{Queue, Queued},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tidegate_core::{
    Message, MessageId,
    outbox::{
        Aside, Claim, Gained, KeyHash, Lane, LaneLease, OnDead, Origin, SetAside, Settled,
        Settlement, Shared, Topics,
    },
};
use tokio::time::Instant;

/// All that a relay knows.
pub(super) struct Flow {
    pub plan: Arc<Plan>,
    pub lanes: Lanes,
    /// One for each sink of the plan.
    pub queues: Vec<Queue>,
    /// Names and topics: the sinks of the plan, then what lagged under an earlier plan.
    pub lines: Vec<(String, Topics)>,
    pub lagging: Vec<bool>,
    pub held: Held,
    /// What was set aside before and is on its way again, until that is settled.
    pub under_way: HashMap<MessageId, Lane>,
    pub aside: Vec<SetAside>,
    pub done: Vec<(Lane, MessageId)>,
    /// What is being settled.
    settling: Option<Settlement>,
    pub counts: Counts,
}

/// What became of messages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Delivered.
    pub delivered: u64,
    /// Not sent, because a later one of the same key was delivered in their place.
    pub coalesced: u64,
    /// Set aside to be tried again.
    pub retried: u64,
    /// Given up.
    pub dead: u64,
    /// Set aside because no route takes their topic.
    pub unrouted: u64,
    /// Lanes that were lost before their messages were settled.
    pub late: u64,
}

impl Flow {
    pub fn new(plan: Arc<Plan>) -> Self {
        let lines = plan.lines();
        let mixes = plan.sinks.iter().map(|it| it.sink.capabilities().mixes_topics);
        Self {
            lanes: Lanes::new(),
            queues: mixes.map(Queue::new).collect(),
            lagging: vec![false; lines.len()],
            lines,
            held: Held::default(),
            under_way: HashMap::new(),
            aside: Vec::new(),
            done: Vec::new(),
            settling: None,
            counts: Counts::default(),
            plan,
        }
    }

    pub fn leases(&self) -> Vec<LaneLease> {
        leases(&self.lanes)
    }

    /// Lanes were shared out.
    pub fn shared(&mut self, shared: Shared) {
        shared.lost.into_iter().for_each(|lane| self.lose(lane));
        for gained in shared.gained {
            self.gain(gained);
        }
        let leaving = self.lanes.values().filter(|lane| lane.leaving).count();
        let stay = self.lanes.values_mut().rev().filter(|lane| !lane.leaving);
        stay.take(shared.surplus.saturating_sub(leaving)).for_each(|lane| lane.leaving = true);
    }

    fn gain(&mut self, gained: Gained) {
        let lane = gained.lease.lane;
        self.held.gain(&gained.held, |name| self.plan.sink_named(name));
        let mut state = LaneState::new(&gained, self.lines.len());
        let lags: Vec<(LineNumber, i64)> = gained
            .lags
            .into_iter()
            .map(|lag| (self.line(lag.sink, lag.topics), lag.cursor))
            .collect();
        state.grow(self.lines.len());
        for (line, cursor) in lags {
            state.detach(line, Some(cursor));
            self.detach(line);
        }
        for line in (0..self.lines.len()).filter(|line| self.lagging[*line]) {
            state.detach(line, None);
        }
        self.lanes.insert(lane, state);
    }

    /// The line with this name and these topics. One that lagged under another plan is read to its end
    /// as it was.
    fn line(&mut self, name: String, topics: Topics) -> LineNumber {
        let known = self.lines.iter().position(|(_, known)| *known == topics);
        known.unwrap_or_else(|| {
            let taken = self.lines.iter().any(|(known, _)| *known == name);
            let name = if taken { format!("{name}~{}", self.lines.len()) } else { name };
            self.lines.push((name, topics));
            self.lagging.push(true);
            let lines = self.lines.len();
            self.lanes.values_mut().for_each(|lane| lane.grow(lines));
            lines - 1
        })
    }

    /// From now on a line is read apart from the rest, in all lanes.
    pub fn detach(&mut self, line: LineNumber) {
        self.lagging[line] = true;
        self.lanes.values_mut().for_each(|lane| lane.detach(line, None));
    }

    pub fn lose(&mut self, lane: Lane) {
        if self.lanes.remove(&lane).is_none() {
            return;
        }
        self.counts.late += 1;
        self.held.lose(lane);
        self.aside.retain(|aside| aside.lane != lane);
        self.done.retain(|(of, _)| *of != lane);
        self.under_way.retain(|_, of| *of != lane);
        self.queues.iter_mut().for_each(|queue| queue.retain(|it| it.message.lane != lane));
    }

    pub fn lose_all(&mut self) {
        let lanes: Vec<Lane> = self.lanes.keys().copied().collect();
        lanes.into_iter().for_each(|lane| self.lose(lane));
    }

    /// Messages were read; `lines` tells for which line each reader read, and `lanes` which lanes.
    pub fn claimed(&mut self, claim: Claim, lines: &[Option<LineNumber>], lanes: &[LaneLease]) {
        let now = Instant::now();
        let still = |flow: &Self, lease: &LaneLease| {
            flow.lanes.get(&lease.lane).is_some_and(|lane| lane.fence == lease.fence)
        };
        let held: HashSet<Lane> =
            lanes.iter().filter(|lease| still(self, lease)).map(|lease| lease.lane).collect();
        for (reading, line) in claim.readings.into_iter().zip(lines) {
            for message in reading.messages.into_iter().filter(|it| held.contains(&it.lane)) {
                if !self.is_read_apart(*line, &message.topic) {
                    self.take_in(message, *line, now);
                }
            }
            for lane in &held {
                if let Some(state) = self.lanes.get_mut(lane) {
                    state.read_to(*line, reading.read_to);
                }
            }
        }
        for message in claim.due.into_iter().filter(|it| held.contains(&it.lane)) {
            self.take_in_again(message, now);
        }
    }

    /// Whether another line has begun to lag since this one was asked for, and will read the topic.
    fn is_read_apart(&self, line: Option<LineNumber>, topic: &str) -> bool {
        let later = line.map_or(0, |line| line + 1);
        let lags = |line: &LineNumber| self.lagging[*line] && self.lines[*line].1.contains(topic);
        (later..self.lines.len()).any(|line| lags(&line))
    }

    /// A message from a lane: set aside at once, or queued.
    fn take_in(&mut self, message: Message, line: Option<LineNumber>, now: Instant) {
        let Some(lane) = self.lanes.get_mut(&message.lane) else { return };
        if lane.was_set_aside(message.id) {
            return;
        }
        let Origin::Lane { due_in } = message.origin else { return };
        let sink = self.plan.sink_of(&message.topic);
        let policy = self.plan.policy(&message.topic);
        let key = message.key_hash().filter(|_| !policy.unordered);
        let Some(sink) = sink else {
            self.counts.unrouted += 1;
            self.aside.push(set(&message, key, String::new(), Aside::Unrouted));
            return;
        };
        let name = || self.plan.sinks[sink].name.clone();
        if let Some(delay) = due_in {
            self.aside.push(set(&message, key, name(), Aside::Later { delay }));
            return;
        }
        if key.is_some_and(|key| self.held.contains(sink, key)) {
            let set = set(&message, key, name(), Aside::Behind);
            return self.set_aside(sink, set);
        }
        let line = line.unwrap_or(sink);
        lane.open(line, message.id);
        let fence = lane.fence;
        let queued = Queued { message, line, fence, key, aside: None, single: false, since: now };
        self.queues[sink].push(queued);
    }

    /// A message that was set aside and is due.
    fn take_in_again(&mut self, message: Message, now: Instant) {
        let Some(lane) = self.lanes.get(&message.lane) else { return };
        let Origin::Aside { attempts, sink } = &message.origin else { return };
        let policy = self.plan.policy(&message.topic);
        let key = message.key_hash().filter(|_| !policy.unordered);
        let known = self.plan.sink_named(sink).or_else(|| self.plan.sink_of(&message.topic));
        if self.under_way.insert(message.id, message.lane).is_some() {
            return;
        }
        let Some(sink) = known else {
            self.aside.push(set(&message, key, String::new(), Aside::Unrouted));
            return;
        };
        if let Some(key) = key {
            self.held.hold(sink, key, message.lane);
        }
        let (aside, fence) = (Some(*attempts), lane.fence);
        let queued = Queued { message, line: sink, fence, key, aside, single: true, since: now };
        self.queues[sink].push(queued);
    }

    /// A message is not simply done: more of its key may have to wait.
    pub fn set_aside(&mut self, sink: usize, set: SetAside) {
        if let Some(key) = held_by(&set) {
            self.held.set_aside(sink, key, set.lane);
        }
        self.aside.push(set);
    }

    /// What is to be settled now, if anything.
    pub fn settlement(&mut self) -> Option<Settlement> {
        if self.settling.is_some() {
            return None;
        }
        let (aside, done) = (std::mem::take(&mut self.aside), std::mem::take(&mut self.done));
        let touched: HashSet<Lane> =
            aside.iter().map(|it| it.lane).chain(done.iter().map(|(lane, _)| *lane)).collect();
        let progress = self.lanes.iter().map(|(lane, state)| {
            let progress = state.progress(*lane, &self.lines);
            (touched.contains(lane) || state.is_news(&progress), progress)
        });
        let lanes = progress.filter(|(news, _)| *news).map(|(_, progress)| progress).collect();
        let settlement = Settlement { lanes, aside, done, ..Settlement::default() };
        if settlement.is_empty() {
            return None;
        }
        self.settling = Some(settlement.clone());
        Some(settlement)
    }

    /// The store has what was to be settled. Returns whether something may be due now.
    pub fn settled(&mut self, settled: Settled) -> bool {
        let Some(settlement) = self.settling.take() else { return false };
        let changed = !settlement.aside.is_empty() || !settlement.done.is_empty();
        // What was settled under a lease that has ended says nothing about the present one.
        let current: HashSet<Lane> = settlement
            .lanes
            .iter()
            .filter(|it| self.lanes.get(&it.lane).is_some_and(|lane| lane.fence == it.fence))
            .map(|it| it.lane)
            .collect();
        for set in settlement.aside.iter().filter(|set| current.contains(&set.lane)) {
            self.under_way.remove(&set.id);
            if let (Some(key), Some(sink)) = (held_by(set), self.plan.sink_named(&set.sink)) {
                self.held.settled(sink, key);
            }
        }
        for (_, id) in settlement.done.iter().filter(|(lane, _)| current.contains(lane)) {
            self.under_way.remove(id);
        }
        for progress in settlement.lanes {
            if let Some(lane) = self.lanes.get_mut(&progress.lane)
                && current.contains(&progress.lane)
            {
                lane.stored(progress);
            }
        }
        settled.late.into_iter().filter(|it| current.contains(it)).for_each(|it| self.lose(it));
        for key in settled.freed.into_iter().filter(|key| current.contains(&key.lane)) {
            if let Some(sink) = self.plan.sink_named(&key.sink) {
                self.held.free(sink, key.key);
            }
        }
        changed
    }

    pub fn is_settling(&self) -> bool {
        self.settling.is_some()
    }

    /// Lanes that are to be given back, and have nothing on its way. They are forgotten.
    pub fn leave(&mut self) -> Vec<LaneLease> {
        if self.settling.is_some() || !self.aside.is_empty() || !self.done.is_empty() {
            return Vec::new();
        }
        let again: HashSet<Lane> = self.under_way.values().copied().collect();
        let ready = |lane: &Lane, state: &LaneState| {
            let progress = state.progress(*lane, &self.lines);
            state.leaving
                && state.is_at_rest()
                && !state.is_news(&progress)
                && !again.contains(lane)
        };
        let leaving: Vec<Lane> =
            self.lanes.iter().filter(|(lane, it)| ready(lane, it)).map(|(lane, _)| *lane).collect();
        let forget = |lane: Lane| {
            self.held.lose(lane);
            self.lanes.remove(&lane).map(|state| LaneLease { lane, fence: state.fence })
        };
        leaving.into_iter().filter_map(forget).collect()
    }

    /// Whether nothing is on its way, and nothing is to be settled.
    pub fn is_at_rest(&self) -> bool {
        self.settling.is_none()
            && self.aside.is_empty()
            && self.done.is_empty()
            && self.queues.iter().all(|queue| queue.load().0 == 0)
    }
}

/// The key that must wait because of this.
fn held_by(set: &SetAside) -> Option<KeyHash> {
    let holds = match set.aside {
        Aside::Retry { .. } | Aside::Behind => true,
        Aside::Dead { then, .. } => then != OnDead::Skip,
        Aside::Later { .. } | Aside::Unrouted => false,
    };
    set.key.filter(|_| holds)
}

/// What becomes of a message, for the store.
pub(super) fn set(message: &Message, key: Option<KeyHash>, sink: String, aside: Aside) -> SetAside {
    let (lane, id, topic) = (message.lane, message.id, message.topic.clone());
    SetAside { lane, id, topic, key, sink, aside }
}
