//! A relay at the bench: it has lanes, reads them and settles, step by step.
//!
//! It knows nothing of the order of keys: cases say what becomes of each message.

use super::bench::{Bench, line_up};
use crate::harness::LATER;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tidegate_core::{
    Fence, Message, MessageId, NewMessage, OutboxStore, Position, WorkerId,
    outbox::{
        Aside, Before, Claim, ClaimRequest, Epoch, GiveBack, Lag, Lane, LaneLease, OnDead,
        OutboxStatus, Pattern, Place, Progress, Reader, Reading, Route, SetAside, Settled,
        Settlement, Share, Shared, Stuck, StuckQuery, StuckState, TopicStatus,
    },
};

/// The sink of all messages, unless a case says otherwise.
pub(crate) const SINK: &str = "a sink";

/// How long to wait before looking again for what is held back.
const PAUSE: Duration = Duration::from_millis(2);

/// Lets the store's clock go on: some count in milliseconds.
pub(crate) async fn tick() {
    tokio::time::sleep(Duration::from_millis(3)).await;
}

/// A message to be, with a payload that tells it from others.
pub(crate) fn new_message(topic: &str, key: impl Into<Option<&'static str>>) -> NewMessage {
    let key = key.into().map(str::to_owned);
    let payload = format!("{{\"of\":\"{topic}\"}}").into_bytes();
    NewMessage { topic: topic.to_owned(), key, payload, ..NewMessage::default() }
}

/// It failed once, and is tried again after this.
pub(crate) fn retry(delay: Duration) -> Aside {
    Aside::Retry { attempts: 1, reason: "no luck".to_owned(), delay }
}

/// It failed for good.
pub(crate) fn dead(then: OnDead) -> Aside {
    Aside::Dead { attempts: 3, reason: "bad luck".to_owned(), then }
}

/// A route for these topics.
pub(crate) fn route(topics: &str, sink: &str) -> Route {
    Route { topics: Pattern(topics.to_owned()), sink: sink.to_owned() }
}

/// Their ids.
pub(crate) fn ids(messages: &[Message]) -> Vec<MessageId> {
    messages.iter().map(|message| message.id.clone()).collect()
}

/// Without their positions: a store that is read by state gives these when it reads.
pub(crate) fn unplaced(messages: &[Message]) -> Vec<Message> {
    let unplaced = |it: &Message| Message { position: Position::default(), ..it.clone() };
    messages.iter().map(unplaced).collect()
}

/// Where they are in the order in which lanes are read.
pub(crate) fn positions(messages: &[Message]) -> Vec<Position> {
    messages.iter().map(|message| message.position).collect()
}

impl Bench {
    pub(crate) async fn publish(&self, messages: Vec<NewMessage>) -> Vec<MessageId> {
        let most = self.capabilities().largest_transaction.unwrap_or(usize::MAX);
        let (mut all, mut messages) = (Vec::new(), messages);
        loop {
            let rest = messages.split_off(messages.len().min(most));
            let ids = self.store.publish(messages).await.expect("publish");
            self.note_published(&ids);
            all.extend(ids);
            if rest.is_empty() {
                return all;
            }
            messages = rest;
        }
    }

    /// Publishes on one topic, a message for each key.
    pub(crate) async fn publish_keys<const N: usize>(
        &self,
        topic: &str,
        keys: [&'static str; N],
    ) -> [MessageId; N] {
        let messages = keys.map(|key| new_message(topic, key)).to_vec();
        self.publish(messages).await.try_into().expect("an id for each message")
    }

    pub(crate) async fn find_stuck(&self, query: StuckQuery) -> Vec<Stuck> {
        self.store.stuck(query).await.expect("list what was set aside")
    }

    /// All that was set aside, as it is listed.
    pub(crate) async fn listed(&self) -> Vec<Stuck> {
        let all = StuckQuery { limit: 10_000, ..StuckQuery::default() };
        let stuck = self.find_stuck(all).await;
        let is_sorted = stuck.is_sorted_by(|one, next| one.id < next.id);
        assert!(is_sorted || !self.lists_by_id(), "it is listed by ids: {stuck:?}");
        stuck
    }

    /// All that was set aside, in the order in which it was published.
    pub(crate) async fn all_stuck(&self) -> Vec<Stuck> {
        let mut stuck = self.listed().await;
        stuck.sort_by_key(|stuck| self.place_of(&stuck.id));
        if !self.has_lines() {
            line_up(&mut stuck);
        }
        stuck
    }

    /// All that was set aside, by id and state.
    pub(crate) async fn states(&self) -> Vec<(MessageId, StuckState)> {
        self.all_stuck().await.into_iter().map(|stuck| (stuck.id, stuck.state)).collect()
    }

    pub(crate) async fn outbox(&self) -> OutboxStatus {
        self.store.outbox().await.expect("the state of the outbox")
    }

    /// How a topic stands.
    pub(crate) async fn topic(&self, topic: &str) -> TopicStatus {
        let topics = self.outbox().await.topics;
        let found = topics.into_iter().find(|status| status.topic == topic);
        found.unwrap_or_else(|| panic!("nothing is known of `{topic}`"))
    }
}

/// A relay and the lanes that it believes to have.
pub(crate) struct Relay {
    bench: Bench,
    store: Arc<dyn OutboxStore>,
    /// What it has read and not settled, of a store that is read by state: there it is read once.
    unmarked: Mutex<BTreeMap<Position, Message>>,
    id: WorkerId,
    pub(crate) routes: Vec<Route>,
    pub(crate) lanes: BTreeMap<Lane, Held>,
    pub(crate) epoch: Epoch,
    /// Of the last settlement.
    pub(crate) number: u64,
}

/// What a relay knows of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) fence: Fence,
    pub(crate) cursor: i64,
    pub(crate) lags: Vec<Lag>,
    pub(crate) before: Option<Before>,
}

impl Relay {
    /// A relay that has not said that it lives.
    pub(crate) fn new(bench: &Bench, name: &str) -> Self {
        Self {
            bench: bench.clone(),
            store: bench.handle(),
            unmarked: Mutex::default(),
            id: WorkerId(name.to_owned()),
            routes: vec![route("*", SINK)],
            lanes: BTreeMap::new(),
            epoch: Epoch::default(),
            number: 0,
        }
    }

    /// A relay with the lanes of one whose lease is over.
    pub(crate) async fn succeed(bench: &Bench, name: &str) -> Self {
        let mut relay = Self::new(bench, name);
        relay.take_over().await;
        relay
    }

    /// Takes the lanes of relays whose leases are over.
    pub(crate) async fn take_over(&mut self) -> Shared {
        let mut shared = self.share(LATER).await;
        for _ in 1..self.bench.looks() {
            let again = self.share(LATER).await;
            shared = Shared { gained: [shared.gained, again.gained.clone()].concat(), ..again };
        }
        shared
    }

    /// Learns what people have decided.
    pub(crate) async fn heed(&mut self) {
        if !self.bench.has_lines() {
            self.share(LATER).await;
        }
    }

    /// A relay with its share of the lanes, for long.
    pub(crate) async fn start(bench: &Bench, name: &str) -> Self {
        let mut relay = Self::new(bench, name);
        relay.share(LATER).await;
        relay
    }

    pub(crate) fn leases(&self) -> Vec<LaneLease> {
        self.lanes.iter().map(|(lane, held)| LaneLease { lane: *lane, fence: held.fence }).collect()
    }

    /// Says that it lives, and learns which lanes it has.
    pub(crate) async fn share(&mut self, lease: Duration) -> Shared {
        let mut shared = self.share_once(lease).await;
        while shared.pending > 0 {
            let more = self.share_once(lease).await;
            shared.gained.extend(more.gained);
            shared.pending = more.pending;
        }
        shared
    }

    async fn share_once(&mut self, lease: Duration) -> Shared {
        let (relay, held, routes) = (self.id.clone(), self.leases(), self.routes.clone());
        let request = Share { relay, epoch: self.epoch.clone(), held, routes, lease };
        let shared = self.store.share_lanes(request).await.expect("share lanes");
        shared.lost.iter().for_each(|lane| drop(self.lanes.remove(lane)));
        self.forget_lost();
        self.epoch = shared.epoch.clone();
        if self.lanes.is_empty() {
            self.number = shared.settled;
        }
        for gained in &shared.gained {
            let (fence, cursor) = (gained.lease.fence, gained.cursor);
            let (lags, before) = (gained.lags.clone(), gained.before.clone());
            let held = Held { fence, cursor, lags, before };
            assert!(self.lanes.insert(gained.lease.lane, held).is_none(), "it was held before");
            self.bench.leased(gained.lease, &self.store);
        }
        shared
    }

    /// Gives some lanes back.
    pub(crate) async fn give_back(&mut self, lanes: usize, ends: bool) {
        let lanes: Vec<LaneLease> = self.leases().into_iter().take(lanes).collect();
        lanes.iter().for_each(|lease| drop(self.lanes.remove(&lease.lane)));
        self.forget_lost();
        let request = GiveBack { relay: self.id.clone(), lanes, ends };
        self.store.give_back_lanes(request).await.expect("give lanes back");
    }

    /// Gives everything back and ends.
    pub(crate) async fn end(mut self) {
        self.give_back(usize::MAX, true).await;
    }

    /// A reader of its lanes as a whole, from where they are.
    pub(crate) fn reader(&self) -> Reader {
        let place = |(lane, held): (&Lane, &Held)| Place { lane: *lane, after: held.cursor };
        Reader { places: self.lanes.iter().map(place).collect(), most: 1_000, ..Reader::default() }
    }

    /// Asks for these readers, and for what is due in its lanes.
    pub(crate) fn asking(&self, readers: Vec<Reader>) -> ClaimRequest {
        let lanes = self.lanes.keys().copied().collect();
        ClaimRequest {
            epoch: self.epoch.clone(),
            readers,
            lanes,
            most_due: 1_000,
            most_bytes: 1 << 20,
            ..ClaimRequest::default()
        }
    }

    pub(crate) async fn ask(&self, request: ClaimRequest) -> Claim {
        let readers = request.readers.clone();
        let most_bytes = request.most_bytes;
        let mut claim = self.store.claim_messages(request).await.expect("claim messages");
        if !self.bench.is_log() {
            self.read_again(&readers, most_bytes, &mut claim);
        }
        claim
    }

    /// What a store that is read by state hands out for the first time.
    pub(crate) async fn ask_unread(&self) -> Vec<Message> {
        let before: Vec<Position> = self.unmarked().keys().copied().collect();
        let read = self.read().await;
        read.into_iter().filter(|message| !before.contains(&message.position)).collect()
    }

    fn unmarked(&self) -> MutexGuard<'_, BTreeMap<Position, Message>> {
        self.unmarked.lock().expect("nothing panics while it holds the lock")
    }

    fn forget_lost(&mut self) {
        self.unmarked().retain(|_, message| self.lanes.contains_key(&message.lane));
    }

    /// A store that is read by state hands out a message once, and a log from any place on: here it is as on a log, so
    /// that cases need not care.
    fn read_again(&self, readers: &[Reader], most_bytes: usize, claim: &mut Claim) {
        let mut unmarked = self.unmarked();
        for message in claim.readings.iter_mut().flat_map(|it| std::mem::take(&mut it.messages)) {
            unmarked.insert(message.position, message);
        }
        for (reader, reading) in readers.iter().zip(&mut claim.readings) {
            let mut bytes = 0;
            for (position, message) in unmarked.iter() {
                let place = reader.places.iter().find(|place| place.lane == message.lane);
                let is_behind = place.is_some_and(|place| position.0 > place.after);
                if !is_behind || !reader.wants(&message.topic) {
                    continue;
                }
                bytes += message.payload.len();
                let is_full = reading.messages.len() >= reader.most;
                if is_full || !reading.messages.is_empty() && bytes > most_bytes {
                    let last = reading.messages.last().map(|it| it.position.0);
                    (reading.more, reading.read_to) = (true, last.unwrap_or(position.0 - 1));
                    break;
                }
                reading.messages.push(message.clone());
            }
        }
    }

    /// Asks again while something is held back: a store may need a second look to know that nothing
    /// older can come.
    pub(crate) async fn ask_decided(&self, request: &ClaimRequest) -> Claim {
        loop {
            let claim = self.ask(request.clone()).await;
            if !claim.held_back {
                return claim;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// One reading of all that one reader can get at once. A store may need several looks to fill it.
    pub(crate) async fn read_once(&self, reader: Reader, most_bytes: usize) -> Reading {
        let mut request = self.asking(vec![reader]);
        request.most_bytes = most_bytes;
        loop {
            let reading = self.ask_decided(&request).await.readings.remove(0);
            if !reading.messages.is_empty() || !reading.more {
                return reading;
            }
            advance(&mut request.readers[0], reading.read_to);
        }
    }

    /// Everything that a reader can get, one reading after the other.
    pub(crate) async fn read_with(&self, mut reader: Reader) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let reading = self.read_once(reader.clone(), 1 << 20).await;
            assert!(reading.messages.len() <= reader.most);
            messages.extend(reading.messages);
            if !reading.more {
                assert!(messages.is_sorted_by_key(|message| message.position));
                return messages;
            }
            advance(&mut reader, reading.read_to);
        }
    }

    /// Everything in its lanes that is still to be read.
    pub(crate) async fn read(&self) -> Vec<Message> {
        self.read_with(self.reader()).await
    }

    /// What was set aside and is due.
    pub(crate) async fn due(&self) -> Vec<Message> {
        self.ask(self.asking(Vec::new())).await.due
    }

    /// Begins a settlement that concerns all its lanes.
    pub(crate) fn step(&mut self) -> Step<'_> {
        self.number += 1;
        let (epoch, number) = (self.epoch.clone(), self.number);
        let settlement = Settlement { epoch, number, ..Settlement::default() };
        Step { settlement, to: Position(i64::MIN), relay: self }
    }

    /// Settles everything that is still to be read as done.
    pub(crate) async fn finish(&mut self) {
        let messages = self.read().await;
        if let Some(last) = messages.last() {
            self.step().to(last.position).send().await;
        }
    }
}

/// Everything up to `read_to` was read.
pub(crate) fn advance(reader: &mut Reader, read_to: i64) {
    reader.places.iter_mut().for_each(|place| place.after = place.after.max(read_to));
}

/// A settlement that is being made.
pub(crate) struct Step<'a> {
    relay: &'a mut Relay,
    /// All that was read is done up to here, but for what is set aside.
    to: Position,
    pub(crate) settlement: Settlement,
}

impl Step<'_> {
    /// All lanes are done up to here.
    pub(crate) fn to(mut self, position: Position) -> Self {
        self.to = position;
        self.relay.lanes.values_mut().for_each(|held| held.cursor = held.cursor.max(position.0));
        self
    }

    /// These sinks lag in all lanes.
    pub(crate) fn lags(self, lags: &[Lag]) -> Self {
        self.relay.lanes.values_mut().for_each(|held| held.lags = lags.to_vec());
        self
    }

    /// This was done under other routes in all lanes.
    pub(crate) fn before(self, before: Option<&Before>) -> Self {
        self.relay.lanes.values_mut().for_each(|held| held.before = before.cloned());
        self
    }

    /// A message is set aside.
    pub(crate) fn aside(self, message: &Message, aside: Aside) -> Self {
        self.aside_for(message, SINK, aside)
    }

    /// A message is set aside for a sink.
    pub(crate) fn aside_for(mut self, message: &Message, sink: &str, aside: Aside) -> Self {
        self.settlement.aside.push(SetAside {
            lane: message.lane,
            position: message.position,
            topic: message.topic.clone(),
            key: message.key_hash(),
            sink: sink.to_owned(),
            aside,
        });
        self
    }

    /// A message that was set aside before is done.
    pub(crate) fn done(mut self, message: &Message) -> Self {
        self.settlement.done.push((message.lane, message.position));
        self
    }

    /// The settlement, unsent.
    pub(crate) fn build(mut self) -> Settlement {
        self.mark();
        let progress = |(lane, held): (&Lane, &Held)| Progress {
            lane: *lane,
            fence: held.fence,
            cursor: held.cursor,
            lags: held.lags.clone(),
            before: held.before.clone(),
        };
        self.settlement.lanes = self.relay.lanes.iter().map(progress).collect();
        self.settlement
    }

    /// A store that is read by state is told of each message that is done.
    fn mark(&mut self) {
        let mut unmarked = self.relay.unmarked();
        let aside: Vec<Position> = self.settlement.aside.iter().map(|set| set.position).collect();
        let done = unmarked.range(..=self.to).filter(|(position, _)| !aside.contains(position));
        self.settlement.done.extend(done.map(|(position, message)| (message.lane, *position)));
        let done = self.settlement.done.iter().map(|(_, position)| *position);
        done.chain(aside).for_each(|position| drop(unmarked.remove(&position)));
    }

    /// Sends it; all lanes must be held.
    pub(crate) async fn send(self) -> Settled {
        let bench = self.relay.bench.clone();
        let settled = bench.settle_messages(self.build()).await;
        assert_eq!(settled.late, []);
        settled
    }
}

impl Bench {
    pub(crate) async fn settle_messages(&self, settlement: Settlement) -> Settled {
        let leases: Vec<_> = settlement.lanes.iter().map(|it| (it.lane, it.fence)).collect();
        let handle = self.handle_of(&leases);
        handle.settle_messages(settlement).await.expect("settle messages")
    }
}
