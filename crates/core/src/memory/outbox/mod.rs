//! The outbox of the memory store.

mod claim;
mod inspect;
mod publish;
mod retain;
mod settle;
mod share;
mod trouble;

use super::{Content, Memory};
use crate::{
    Fence, Headers, MessageId, Position, StoreError, WorkerId,
    outbox::{
        Aside, AuditLine, Before, Claim, ClaimRequest, Epoch, GiveBack, Habits, HeldKey, KeyHash,
        LANES, Lag, Lane, Message, OnDead, Origin, Outbox, OutboxCapabilities, Settled, Settlement,
        Share, Shared, StuckState, TroubleNote, Waiting, is_left,
    },
};
use async_trait::async_trait;
use std::{collections::BTreeMap, time::Duration};

/// All that an outbox keeps.
#[derive(Clone)]
pub(super) struct OutboxContent {
    /// Grows when the store goes back in time.
    epoch: u64,
    last_id: i64,
    messages: BTreeMap<Position, Stored>,
    lanes: Vec<LaneRow>,
    /// When each relay counts as gone.
    relays: BTreeMap<String, Duration>,
    /// The number of the last settlement of each relay that has lanes.
    settled: BTreeMap<String, u64>,
    aside: BTreeMap<Position, AsideRow>,
    limit: Option<u64>,
    audit: Vec<AuditLine>,
    /// By relay and sink.
    trouble: BTreeMap<(String, String), trouble::TroubleRow>,
}

#[derive(Clone)]
struct Stored {
    lane: Lane,
    topic: String,
    key: Option<String>,
    headers: Headers,
    payload: Vec<u8>,
    published: Duration,
    not_before: Option<Duration>,
}

#[derive(Clone)]
struct LaneRow {
    cursor: i64,
    lags: Vec<Lag>,
    before: Option<Before>,
    fence: Fence,
    /// Empty: nobody.
    relay: String,
}

#[derive(Clone)]
struct AsideRow {
    lane: Lane,
    topic: String,
    key: Option<KeyHash>,
    sink: String,
    state: StuckState,
    attempts: u32,
    reason: String,
    then: OnDead,
    due: Duration,
}

impl Default for OutboxContent {
    fn default() -> Self {
        let lane = |_| LaneRow {
            cursor: 0,
            lags: Vec::new(),
            before: None,
            fence: Fence::NOBODY,
            relay: String::new(),
        };
        Self {
            epoch: 0,
            last_id: 0,
            messages: BTreeMap::new(),
            lanes: (0..LANES).map(lane).collect(),
            relays: BTreeMap::new(),
            settled: BTreeMap::new(),
            aside: BTreeMap::new(),
            limit: None,
            audit: Vec::new(),
            trouble: BTreeMap::new(),
        }
    }
}

impl AsideRow {
    /// Whether what follows with its key must wait.
    fn holds(&self) -> bool {
        match self.state {
            StuckState::Retry | StuckState::Behind => true,
            StuckState::Dead => self.then != OnDead::Skip,
            StuckState::Later | StuckState::Unrouted => false,
        }
    }

    fn held_key(&self) -> Option<HeldKey> {
        Some(HeldKey { lane: self.lane, sink: self.sink.clone(), key: self.key? })
    }

    fn become_due(&mut self, now: Duration) {
        self.state = StuckState::Retry;
        self.due = now;
    }

    fn set(&mut self, aside: &Aside, now: Duration) {
        let Waiting { state, attempts, reason, then, delay } = aside.waiting();
        self.attempts = self.attempts.max(attempts);
        if !reason.is_empty() {
            reason.clone_into(&mut self.reason);
        }
        (self.state, self.then, self.due) = (state, then, now + delay);
    }
}

impl OutboxContent {
    /// Makes the first that waits of a key due, unless one before it holds the key; all others wait.
    /// Returns whether nothing that holds it is left.
    fn tend(&mut self, key: &HeldKey, now: Duration) -> bool {
        let of_key = |row: &&mut AsideRow| row.holds() && row.held_key().as_ref() == Some(key);
        let mut line = self.aside.values_mut().filter(of_key);
        let Some(first) = line.next() else { return true };
        if first.state == StuckState::Behind {
            first.become_due(now);
        }
        line.filter(|row| row.state == StuckState::Retry)
            .for_each(|row| row.state = StuckState::Behind);
        false
    }

    fn lane(&self, lane: Lane) -> &LaneRow {
        &self.lanes[usize::from(lane.0)]
    }

    fn message(&self, position: Position, origin: Origin) -> Option<Message> {
        let stored = self.messages.get(&position)?;
        let id = MessageId::from(position);
        Some(Message {
            name: Message::name_of("memory", stored.published.as_micros(), &id),
            id,
            position,
            lane: stored.lane,
            topic: stored.topic.clone(),
            key: stored.key.clone(),
            headers: stored.headers.clone(),
            payload: stored.payload.clone(),
            published_ms: stored.published.as_millis() as i64,
            origin,
            damage: None,
        })
    }

    /// Whether a message is still to be read from its lane.
    fn is_unread(&self, id: Position) -> bool {
        let Some(message) = self.messages.get(&id) else { return false };
        let row = self.lane(message.lane);
        is_left(row.cursor, &row.lags, row.before.as_ref(), &message.topic, id)
            && !self.aside.contains_key(&id)
    }
}

#[async_trait]
impl Outbox for Memory {
    fn outbox_capabilities(&self) -> OutboxCapabilities {
        OutboxCapabilities::log("memory", Habits::default())
    }

    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError> {
        Ok(self.content().share_lanes(request, self.now()))
    }

    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        self.content().outbox.claim(&request, self.now())
    }

    async fn settle_messages(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        self.content().outbox.settle(settlement, self.now())
    }

    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError> {
        self.content().outbox.give_back(request);
        Ok(())
    }

    async fn note_sinks(&self, note: TroubleNote) -> Result<(), StoreError> {
        self.content().outbox.note_sinks(note, self.now());
        Ok(())
    }

    async fn published(&self) {
        std::future::pending().await
    }
}

impl Content {
    /// Nothing that a relay learned before holds any more: lanes have new fences, though their relays may have them
    /// again at once.
    pub(super) fn begin_epoch(&mut self) {
        self.outbox.settled.clear();
        let mut fences = self.last_fence;
        for row in self.outbox.lanes.iter_mut().filter(|row| !row.relay.is_empty()) {
            fences += 1;
            row.fence = Fence(fences);
        }
        self.last_fence = fences;
    }

    fn share_lanes(&mut self, request: Share, now: Duration) -> Shared {
        let mut fences = self.last_fence;
        let shared = self.outbox.share(request, now, || {
            fences += 1;
            Fence(fences)
        });
        self.last_fence = fences;
        shared
    }
}

impl OutboxContent {
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    fn check_epoch(&self, operation: &'static str, epoch: &Epoch) -> Result<(), StoreError> {
        let is_present = *epoch == self.epoch_name();
        if is_present { Ok(()) } else { Err(StoreError::went_back(operation)) }
    }

    fn epoch_name(&self) -> Epoch {
        if self.epoch == 0 { Epoch::default() } else { Epoch(self.epoch.to_string()) }
    }
}

/// For people and leases.
fn name(relay: &WorkerId) -> String {
    relay.0.clone()
}
