//! A relay at the bench: it has lanes, reads them and settles, step by step.
//!
//! It knows nothing of the order of keys: cases say what becomes of each message.

use crate::harness::{Bench, LATER};
use std::{collections::BTreeMap, time::Duration};
use tidegate_core::{
    Fence, Message, MessageId, NewMessage, Position, WorkerId,
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

/// Where they are in the order in which lanes are read.
pub(crate) fn positions(messages: &[Message]) -> Vec<Position> {
    messages.iter().map(|message| message.position).collect()
}

impl Bench {
    pub(crate) async fn publish(&self, messages: Vec<NewMessage>) -> Vec<MessageId> {
        self.store.publish(messages).await.expect("publish")
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

    /// All that was set aside.
    pub(crate) async fn all_stuck(&self) -> Vec<Stuck> {
        self.find_stuck(StuckQuery { limit: 10_000, ..StuckQuery::default() }).await
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
        let (bench, id) = (bench.clone(), WorkerId(name.to_owned()));
        let (routes, lanes) = (vec![route("*", SINK)], BTreeMap::new());
        Self { bench, id, routes, lanes, epoch: Epoch::default(), number: 0 }
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
        let shared = self.bench.store.share_lanes(request).await.expect("share lanes");
        shared.lost.iter().for_each(|lane| drop(self.lanes.remove(lane)));
        self.epoch = shared.epoch.clone();
        if self.lanes.is_empty() {
            self.number = shared.settled;
        }
        for gained in &shared.gained {
            let (fence, cursor) = (gained.lease.fence, gained.cursor);
            let (lags, before) = (gained.lags.clone(), gained.before.clone());
            let held = Held { fence, cursor, lags, before };
            assert!(self.lanes.insert(gained.lease.lane, held).is_none(), "it was held before");
        }
        shared
    }

    /// Gives some lanes back.
    pub(crate) async fn give_back(&mut self, lanes: usize, ends: bool) {
        let lanes: Vec<LaneLease> = self.leases().into_iter().take(lanes).collect();
        lanes.iter().for_each(|lease| drop(self.lanes.remove(&lease.lane)));
        let request = GiveBack { relay: self.id.clone(), lanes, ends };
        self.bench.store.give_back_lanes(request).await.expect("give lanes back");
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
        self.bench.store.claim_messages(request).await.expect("claim messages")
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
        Step { settlement, relay: self }
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
    pub(crate) settlement: Settlement,
}

impl Step<'_> {
    /// All lanes are done up to here.
    pub(crate) fn to(self, position: Position) -> Self {
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
        self.store.settle_messages(settlement).await.expect("settle messages")
    }
}
