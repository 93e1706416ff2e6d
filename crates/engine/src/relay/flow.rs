//! All that a relay knows: what it has read, what is on its way, what is to be settled. Pure: it does no
//! I/O, and the loop carries out what it decides.

use super::{
    counts::Counts,
    held::Held,
    lanes::{LaneState, Lanes, Leaving, LineNumber, leases},
    places::{PROBES, Shut, place},
    plan::{Line, Plan},
    queue::{Queue, Queued},
    reading::{Asked, FIRST_READ},
};
use crate::deliver::STALLED_AFTER;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tidegate_core::{
    Message, MessageId, Position,
    outbox::{
        Aside, Claim, Epoch, Gained, KeyHash, Lane, LaneLease, OnDead, Origin, SetAside, Settled,
        Settlement, Shared, StuckState,
    },
};
use tokio::time::Instant;

/// All that a relay knows.
pub(super) struct Flow {
    pub plan: Arc<Plan>,
    pub lanes: Lanes,
    /// One for each sink of the plan.
    pub queues: Vec<Queue>,
    /// For each sink, whether a group may have messages of several topics, if it does not say where they go.
    mixes: Vec<bool>,
    /// For each sink, the destinations that hold up others: what is for them is set aside.
    pub shut: Vec<HashMap<String, Shut>>,
    pub lines: Vec<Line>,
    /// For each line, whether it is read apart from the rest, in all lanes.
    pub lagging: Vec<bool>,
    /// For each sink, whether it takes nothing any more.
    pub gone: Vec<bool>,
    pub held: Held,
    /// What was set aside and is on its way again, or is being set aside, until that is settled.
    pub under_way: HashMap<Position, UnderWay>,
    /// Keys whose first message was given up and that go on, once the store knows; whether it is being told.
    pub given_up: Vec<(Lane, usize, KeyHash, bool)>,
    /// Keys of which more was set aside since messages were asked for last.
    pub touched: HashSet<(usize, KeyHash)>,
    /// How many messages to read at once.
    pub read_most: usize,
    pub aside: Vec<SetAside>,
    pub done: Vec<(Lane, Position)>,
    /// The store's epoch in which the lanes were leased.
    epoch: Epoch,
    /// The number of the last settlement of which the store took something, or that it is asked to take.
    settlements: u64,
    /// What is being settled.
    pub settling: Option<Settlement>,
    pub counts: Counts,
    /// A message that was put off for so long is told of.
    pub stalled_after: Duration,
    /// Each message that is done is marked, and not passed by a cursor.
    pub by_state: bool,
    /// Topics of which it was said that a message is dead, or has no route.
    told: HashSet<(String, &'static str)>,
}

/// How many topics are named in the log, each once: the rest is counted.
const MOST_TOLD: usize = 100;
/// How many characters of a topic are shown there.
const MOST_SHOWN: usize = 100;

/// A message that must not be claimed from those set aside.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderWay {
    pub lane: Lane,
    pub sink: Option<usize>,
    pub what: Doing,
}

/// Why a message must not be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It is on its way.
    Sent,
    /// It is being set aside, or more of its key is: the store does not know yet what comes first.
    Settled,
    /// There may be others of its key before it that were not read yet.
    Read,
}

impl Flow {
    pub fn new(plan: Arc<Plan>) -> Self {
        let lines = plan.lines();
        let one_per_key = plan.sinks.iter().map(|it| it.sink.one_per_key());
        let mixes = plan.sinks.iter().map(|it| it.sink.capabilities().mixes_topics);
        Self {
            lanes: Lanes::new(),
            queues: one_per_key.map(Queue::new).collect(),
            mixes: mixes.collect(),
            shut: vec![HashMap::new(); plan.sinks.len()],
            lagging: vec![false; lines.len()],
            gone: vec![false; plan.sinks.len()],
            lines,
            held: Held::default(),
            under_way: HashMap::new(),
            given_up: Vec::new(),
            touched: HashSet::new(),
            read_most: FIRST_READ,
            aside: Vec::new(),
            done: Vec::new(),
            epoch: Epoch::default(),
            settlements: 0,
            settling: None,
            counts: Counts::default(),
            stalled_after: STALLED_AFTER,
            by_state: false,
            told: HashSet::new(),
            plan,
        }
    }

    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    pub fn leases(&self) -> Vec<LaneLease> {
        leases(&self.lanes)
    }

    /// Lanes were shared out. Nothing that was learned in another epoch is kept, also if the store says that it is.
    pub fn shared(&mut self, shared: Shared, now: Instant) {
        if shared.epoch != self.epoch {
            self.lose_all();
        }
        shared.lost.into_iter().for_each(|lane| self.lose(lane));
        self.epoch = shared.epoch;
        // With lanes from before, the settlement on its way may be one more than the store had.
        if self.lanes.is_empty() {
            self.settlements = shared.settled;
        }
        for gained in shared.gained {
            self.gain(&gained);
        }
        let (mut stay, leave): (Vec<&mut LaneState>, Vec<_>) =
            self.lanes.values_mut().rev().partition(|lane| lane.leaving == Leaving::No);
        stay.sort_by_key(|lane| lane.open_count());
        let more = shared.surplus.saturating_sub(leave.len());
        stay.into_iter().take(more).for_each(|lane| lane.leaving = Leaving::Soon(now));
    }

    fn gain(&mut self, gained: &Gained) {
        let lane = gained.lease.lane;
        self.held.gain(&gained.held, |name| self.plan.sink_named(name));
        let state = LaneState::new(gained, &self.lines);
        state.lags().for_each(|line| self.lagging[line] = true);
        self.lanes.insert(lane, state);
        for line in 0..self.lines.len() {
            if self.lagging[line] {
                self.detach(line);
            }
        }
    }

    /// From now on a line is read apart from the rest, in all lanes.
    pub fn detach(&mut self, line: LineNumber) {
        self.lagging[line] = true;
        self.lanes.values_mut().for_each(|lane| lane.detach(line));
    }

    pub fn lose(&mut self, lane: Lane) {
        if self.lanes.remove(&lane).is_none() {
            return;
        }
        self.counts.late += 1;
        self.held.lose(lane);
        self.aside.retain(|aside| aside.lane != lane);
        self.done.retain(|(of, _)| *of != lane);
        self.under_way.retain(|_, it| it.lane != lane);
        self.go_on(|of, _| of == lane);
        self.queues.iter_mut().for_each(|queue| drop(queue.take_lanes(|it| it == lane, false)));
    }

    pub fn lose_all(&mut self) {
        let lanes: Vec<Lane> = self.lanes.keys().copied().collect();
        lanes.into_iter().for_each(|lane| self.lose(lane));
    }

    /// Messages were read.
    pub fn claimed(&mut self, claim: Claim, asked: &Asked, now: Instant) {
        let still = |flow: &Self, lease: &LaneLease| {
            flow.lanes.get(&lease.lane).is_some_and(|lane| lane.fence == lease.fence)
        };
        let held: HashSet<Lane> =
            asked.lanes.iter().filter(|lease| still(self, lease)).map(|lease| lease.lane).collect();
        self.learn_size(claim.readings.iter().any(|reading| reading.more));
        for (reading, line) in claim.readings.into_iter().zip(&asked.lines) {
            for message in reading.messages.into_iter().filter(|it| held.contains(&it.lane)) {
                if line.is_some() || !self.is_read_apart(&message.topic) {
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
        self.find_settled(claim.gone, claim.set_aside);
        let lanes = &self.lanes;
        let is_read = |position: &Position, it: &UnderWay| {
            let lane = it.sink.zip(lanes.get(&it.lane));
            lane.is_none_or(|(line, lane)| position.0 <= lane.read_from(Some(line)))
        };
        self.under_way.retain(|at, it| it.what != Doing::Read || !is_read(at, it));
    }

    /// Of what was set aside, the store has found some to be done, or to wait for something else.
    fn find_settled(&mut self, gone: Vec<(Lane, Position)>, set_aside: Vec<SetAside>) {
        let mut is_new = |lane: Lane, position: Position| {
            let under_way = UnderWay { lane, sink: None, what: Doing::Settled };
            self.lanes.contains_key(&lane) && self.under_way.insert(position, under_way).is_none()
        };
        self.done.extend(gone.into_iter().filter(|(lane, position)| is_new(*lane, *position)));
        self.aside.extend(set_aside.into_iter().filter(|set| is_new(set.lane, set.position)));
    }

    /// Whether the topic's line has begun to lag since the lanes were asked for, and will read it.
    fn is_read_apart(&self, topic: &str) -> bool {
        let mut lines = self.lagging.iter().zip(&self.lines);
        lines.any(|(lagging, line)| *lagging && line.topics.contains(topic))
    }

    /// A message from a lane: set aside at once, or queued.
    fn take_in(&mut self, message: Message, line: Option<LineNumber>, now: Instant) {
        let Some(lane) = self.lanes.get_mut(&message.lane) else { return };
        if lane.was_set_aside(message.position) || lane.was_done(&message.topic, message.position) {
            return;
        }
        let Origin::Lane { due_in } = message.origin else { return };
        let sink = self.plan.sink_of(&message.topic);
        let policy = self.plan.policy(&message.topic);
        let key = message.key_hash().filter(|_| !policy.unordered);
        if let Some(reason) = message.flaw() {
            return self.refuse(&message, key, sink, reason);
        }
        let Some(sink) = sink else {
            self.counts.unrouted += 1;
            self.aside.push(set(&message, key, String::new(), Aside::Unrouted));
            if self.is_new(&message.topic, "no route") {
                tracing::warn!("no route takes {}: its messages are kept", shown(&message.topic));
            }
            return;
        };
        let name = || self.plan.sinks[sink].name.clone();
        if let Some(delay) = due_in {
            self.aside.push(set(&message, key, name(), Aside::Later { delay }));
            return;
        }
        if key.is_some_and(|key| self.held.sets_aside(sink, key)) {
            let set = set(&message, key, name(), Aside::Behind);
            return self.set_aside(sink, set);
        }
        let place = place(&self.plan, &self.mixes, sink, &message);
        let is_known = key.is_some_and(|key| self.queues[sink].has_key(key));
        if !is_known && let Some(aside) = self.turn_away(sink, &place, message.position, 0) {
            let set = set(&message, key, self.plan.sinks[sink].name.clone(), aside);
            return self.set_aside(sink, set);
        }
        self.held.opened(sink, key.filter(|_| self.by_state), message.lane);
        let Some(lane) = self.lanes.get_mut(&message.lane) else { return };
        let line = line.unwrap_or(sink);
        lane.open(line, message.position);
        let fence = lane.fence;
        let (aside, single, since) = (None, false, now);
        let queued = Queued { message, line, fence, key, place, aside, single, since };
        self.queues[sink].push(queued);
    }

    /// A message that was set aside and is due.
    fn take_in_again(&mut self, message: Message, now: Instant) {
        let Some(lane) = self.lanes.get(&message.lane) else { return };
        let Origin::Aside { attempts, sink, waited_for } = &message.origin else { return };
        let policy = self.plan.policy(&message.topic);
        let key = message.key_hash().filter(|_| !policy.unordered);
        let stored = self.plan.sink_named(sink);
        let known = self.plan.sink_of(&message.topic).or(stored);
        let known_key = known.zip(key);
        if self.under_way.contains_key(&message.position)
            || known_key.is_some_and(|known| self.touched.contains(&known))
        {
            return; // the next claim tells what comes first
        }
        let is_unsettled = |(sink, key)| self.held.is_unsettled(sink, key);
        let what = match known {
            Some(sink) if message.position.0 > lane.read_from(Some(sink)) => Doing::Read,
            _ if known_key.is_some_and(is_unsettled) => Doing::Settled,
            _ => Doing::Sent,
        };
        let (lane, fence) = (message.lane, lane.fence);
        self.under_way.insert(message.position, UnderWay { lane, sink: known, what });
        if what != Doing::Sent {
            return;
        }
        if let Some(reason) = message.flaw() {
            return self.refuse(&message, key, known, reason);
        }
        let Some(sink) = known else {
            self.aside.push(set(&message, key, String::new(), Aside::Unrouted));
            return;
        };
        // One that somebody retries may go elsewhere by now, and takes its place there.
        let moves = known != stored;
        let delayed = *waited_for == StuckState::Later;
        if moves || delayed && key.is_some_and(|key| self.held.contains(sink, key)) {
            let set = set(&message, key, self.plan.sinks[sink].name.clone(), Aside::Behind);
            return self.set_aside(sink, set);
        }
        let (place, attempts) = (place(&self.plan, &self.mixes, sink, &message), *attempts);
        if self.queues[sink].ready_at(&place) >= PROBES
            && let Some(aside) = self.turn_away(sink, &place, message.position, attempts)
        {
            let set = set(&message, key, self.plan.sinks[sink].name.clone(), aside);
            return self.set_aside(sink, set);
        }
        if let Some(key) = key {
            self.held.hold(sink, key, message.lane);
        }
        let (aside, single, since) = (Some(attempts), true, now);
        let queued = Queued { message, line: sink, fence, key, place, aside, single, since };
        self.queues[sink].push(queued);
    }

    /// No sink gets it, whether or not it has a route, and its key goes on.
    fn refuse(
        &mut self,
        message: &Message,
        key: Option<KeyHash>,
        sink: Option<usize>,
        reason: String,
    ) {
        self.died(&message.id, &message.topic, &reason);
        let dead = Aside::Dead { attempts: 0, reason, then: OnDead::Skip };
        let sink = sink.map_or_else(String::new, |sink| self.plan.sinks[sink].name.clone());
        self.aside.push(set(message, key, sink, dead));
    }

    /// A message is not simply done: more of its key may have to wait.
    pub fn set_aside(&mut self, sink: usize, set: SetAside) {
        if let Some(key) = held_by(&set) {
            self.held.set_aside(sink, key, set.lane);
        }
        self.aside.push(set);
    }

    /// A message is given up.
    pub fn died(&mut self, id: &MessageId, topic: &str, reason: &str) {
        self.counts.dead += 1;
        if self.is_new(topic, "dead") {
            tracing::warn!("message {id} on {} is dead: {reason}", shown(topic));
        }
    }

    /// Whether that is to be said of a topic: it was not before.
    pub fn is_new(&mut self, topic: &str, what: &'static str) -> bool {
        self.told.len() < MOST_TOLD && self.told.insert((shown(topic), what))
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
        let (epoch, number) = (self.epoch.clone(), self.settlements + 1);
        let settlement = Settlement { epoch, number, lanes, aside, done };
        if settlement.is_empty() {
            return None;
        }
        self.settlements = number;
        self.given_up.iter_mut().for_each(|(.., told)| *told = true);
        // The store may have them before it says so, and hand them out.
        for set in &settlement.aside {
            let sink = self.plan.sink_named(&set.sink);
            let under_way = UnderWay { lane: set.lane, sink, what: Doing::Settled };
            self.under_way.insert(set.position, under_way);
        }
        self.settling = Some(settlement.clone());
        Some(settlement)
    }

    /// The store went back in time when it was asked by somebody who knew it in this epoch. Returns whether that
    /// is what this relay knows, which is forgotten then.
    pub fn went_back(&mut self, epoch: &Epoch) -> bool {
        let is_known = *epoch == self.epoch;
        if is_known {
            self.lose_all();
        }
        is_known
    }

    /// The store has what was to be settled. Returns whether something may be due now.
    pub fn settled(&mut self, settled: Settled) -> bool {
        let Some(settlement) = self.settling.take() else { return false };
        // The store has not noted a settlement of which it took nothing.
        if settled.late.len() == settlement.lanes.len() && self.settlements == settlement.number {
            self.settlements -= 1;
        }
        let changed = !settlement.aside.is_empty() || !settlement.done.is_empty();
        // What was settled under a lease that has ended says nothing about the present one.
        let current: HashSet<Lane> = settlement
            .lanes
            .iter()
            .filter(|it| self.lanes.get(&it.lane).is_some_and(|lane| lane.fence == it.fence))
            .map(|it| it.lane)
            .collect();
        for set in settlement.aside.iter().filter(|set| current.contains(&set.lane)) {
            if let (Some(key), Some(sink)) = (held_by(set), self.plan.sink_named(&set.sink)) {
                self.held.settled(sink, key);
                self.touched.insert((sink, key));
            }
        }
        self.under_way.retain(|_, it| it.what != Doing::Settled || !current.contains(&it.lane));
        self.go_on(|lane, told| told && current.contains(&lane));
        for (_, position) in settlement.done.iter().filter(|(lane, _)| current.contains(lane)) {
            self.under_way.remove(position);
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

    /// Keys of some lanes go on behind messages that were given up.
    fn go_on(&mut self, lanes: impl Fn(Lane, bool) -> bool) {
        let settled = self.given_up.extract_if(.., |(lane, _, _, told)| lanes(*lane, *told));
        for (_, sink, key, _) in settled {
            self.queues[sink].finished(0, [key]);
        }
    }

    pub fn is_settling(&self) -> bool {
        self.settling.is_some()
    }

    /// Whether nothing is on its way to a sink that takes something, and nothing is to be settled.
    pub fn is_at_rest(&self) -> bool {
        let mut queues = self.queues.iter().zip(&self.gone);
        self.settling.is_none()
            && self.aside.is_empty()
            && self.done.is_empty()
            && queues.all(|(queue, gone)| *gone || queue.load().0 == 0)
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

/// A topic for the log, whatever is in it.
pub(super) fn shown(topic: &str) -> String {
    topic.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect()
}

/// What becomes of a message, for the store.
pub(super) fn set(message: &Message, key: Option<KeyHash>, sink: String, aside: Aside) -> SetAside {
    let (lane, position, topic) = (message.lane, message.position, message.topic.clone());
    SetAside { lane, position, topic, key, sink, aside }
}
