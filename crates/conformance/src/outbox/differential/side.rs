//! One of the two stores, spoken to in names: messages are counted from zero in the order in which they
//! were published, and leases in the order in which they were gained; a cursor is how many messages it
//! has passed. So requests and answers of both sides can be compared.

use super::super::relay::{Relay, advance, route};
use crate::{
    harness::{AT_ONCE, LATER},
    outbox::bench::Bench,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tidegate_core::{
    Fence, Message, MessageId, NewMessage, Position, StoreError, WorkerId,
    outbox::{
        Aside, AuditLine, ClaimRequest, DeadGroup, Epoch, GiveBack, HeldKey, KeyHash, Lag, Lane,
        LaneLease, Origin, Place, Progress, Reader, RelayStatus, Selection, SetAside, Settlement,
        Share, Shared, Stuck, StuckQuery, StuckState, TopicStatus, Topics,
    },
};

pub(super) const SINKS: [&str; 2] = ["even", "odd"];
pub(super) const TOPICS: [&str; 3] = ["even.a", "odd", "even.b"];

type Called<T> = Result<T, StoreError>;

/// What goes to a sink.
pub(super) fn topics_of(sink: &str) -> Topics {
    Topics::of_sink(&[route("even.*", SINKS[0]), route("odd", SINKS[1])], sink)
}

pub(super) struct Side {
    bench: Bench,
    /// Where the outbox was when the sequence began.
    base: i64,
    /// Both stores are logs: by its position a message is known as by its id.
    messages: Vec<Position>,
    read: BTreeMap<usize, Message>,
    gained: Vec<BTreeMap<Lane, Fence>>,
    epoch: Epoch,
}

/// A message as it was read, in names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) message: usize,
    pub(super) topic: String,
    pub(super) key: Option<String>,
    /// Attempts, sink and what it waited for, if it was set aside.
    pub(super) aside: Option<(u32, String, StuckState)>,
    is_due: bool,
}

/// A sink that lags in all lanes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Behind {
    pub(super) sink: &'static str,
    pub(super) cursor: usize,
}

/// What a relay got, in names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Got {
    /// How many lanes.
    pub(super) gained: usize,
    pub(super) lost: usize,
    surplus: usize,
    relays: usize,
    /// Of all lanes the same.
    cursors: BTreeSet<usize>,
    lags: BTreeSet<(String, usize)>,
    held: BTreeSet<(String, KeyHash)>,
    aside: BTreeSet<usize>,
    fences_grow: bool,
}

impl Got {
    pub(super) fn cursor(&self) -> usize {
        self.cursors.first().copied().unwrap_or(0)
    }

    pub(super) fn lags(&self) -> Vec<Behind> {
        let name = |sink: &str| SINKS.into_iter().find(|name| *name == sink);
        let lags = self.lags.iter();
        lags.filter_map(|(sink, cursor)| Some(Behind { sink: name(sink)?, cursor: *cursor }))
            .collect()
    }
}

/// A settlement in names, for all lanes of a lease.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    pub(super) lease: usize,
    pub(super) cursor: usize,
    pub(super) lags: Vec<Behind>,
    pub(super) aside: Vec<(usize, String, Aside)>,
    pub(super) done: Vec<usize>,
}

/// What can be seen by people, in names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Observed {
    stuck: Vec<Stuck>,
    topics: Vec<TopicStatus>,
    relays: Vec<RelayStatus>,
    dead: Vec<DeadGroup>,
}

impl Side {
    /// Begins where everything is sent.
    pub(super) async fn new(bench: Bench) -> Self {
        let base = sweep(&bench).await;
        let (messages, read, gained) = Default::default();
        Self { bench, base, messages, read, gained, epoch: Epoch::default() }
    }

    /// Leaves nothing behind that the next sequence could see.
    pub(super) async fn end(&self, relays: usize) {
        for relay in 0..relays {
            for lease in (0..self.gained.len()).map(Some).chain([None]) {
                self.give_back(relay, lease).await.expect("give lanes back");
            }
        }
        sweep(&self.bench).await;
    }

    fn id(&self, passed: usize) -> i64 {
        passed.checked_sub(1).map_or(self.base, |last| self.messages[last].0)
    }

    fn passed(&self, cursor: i64) -> usize {
        self.messages.iter().filter(|id| id.0 <= cursor).count()
    }

    fn name(&self, position: Position) -> usize {
        let place = self.messages.iter().position(|message| *message == position);
        place.expect("a store answers with messages of this sequence only")
    }

    fn seen(&mut self, message: Message) -> Seen {
        let name = self.name(message.position);
        let (aside, is_due) = match &message.origin {
            Origin::Aside { attempts, sink, waited_for } => {
                (Some((*attempts, sink.clone(), *waited_for)), true)
            }
            Origin::Lane { due_in } => (None, due_in.is_none()),
        };
        let (topic, key) = (message.topic.clone(), message.key.clone());
        self.read.insert(name, message);
        Seen { message: name, topic, key, aside, is_due }
    }

    pub(super) async fn publish(&mut self, messages: Vec<NewMessage>) -> Called<usize> {
        let ids = self.bench.store.publish(messages).await?;
        self.messages.extend(ids.iter().map(position));
        assert!(self.messages.is_sorted());
        Ok(self.messages.len())
    }

    /// Shares; what it gains is a new lease.
    pub(super) async fn share(
        &mut self,
        relay: usize,
        held: Option<usize>,
        lasts: bool,
        all_routes: bool,
    ) -> Called<Got> {
        let routes = [route("even.*", SINKS[0]), route("odd", SINKS[1])];
        let mut request = Share {
            relay: name_of(relay),
            epoch: self.epoch.clone(),
            held: held.map_or_else(Vec::new, |lease| self.leases(lease)),
            routes: routes.into_iter().take(if all_routes { 2 } else { 1 }).collect(),
            lease: length(lasts),
        };
        let mut shared = self.bench.store.share_lanes(request.clone()).await?;
        request.held.extend(shared.gained.iter().map(|it| it.lease));
        while shared.pending > 0 {
            let more = self.bench.store.share_lanes(request.clone()).await?;
            request.held.extend(more.gained.iter().map(|it| it.lease));
            shared.gained.extend(more.gained);
            shared.pending = more.pending;
        }
        self.epoch = shared.epoch.clone();
        Ok(self.got(shared))
    }

    fn got(&mut self, shared: Shared) -> Got {
        let lanes = || shared.gained.iter();
        let newest = self.gained.iter().flat_map(BTreeMap::values).max().copied();
        let got = Got {
            gained: shared.gained.len(),
            lost: shared.lost.len(),
            surplus: shared.surplus,
            relays: shared.relays,
            cursors: lanes().map(|lane| self.passed(lane.cursor)).collect(),
            lags: lanes()
                .flat_map(|lane| &lane.lags)
                .inspect(|lag| assert_eq!(lag.topics, topics_of(&lag.sink)))
                .map(|lag| (lag.sink.clone(), self.passed(lag.cursor)))
                .collect(),
            held: lanes()
                .flat_map(|lane| &lane.held)
                .map(|key| (key.sink.clone(), key.key))
                .collect(),
            aside: lanes().flat_map(|lane| &lane.aside).map(|id| self.name(*id)).collect(),
            fences_grow: lanes().all(|lane| Some(lane.lease.fence) > newest),
        };
        if got.gained > 0 {
            let fences = lanes().map(|lane| (lane.lease.lane, lane.lease.fence));
            self.gained.push(fences.collect());
        }
        got
    }

    fn leases(&self, lease: usize) -> Vec<LaneLease> {
        let lanes = self.gained[lease].iter();
        lanes.map(|(lane, fence)| LaneLease { lane: *lane, fence: *fence }).collect()
    }

    pub(super) async fn give_back(&self, relay: usize, lease: Option<usize>) -> Called<()> {
        let lanes = lease.map_or_else(Vec::new, |lease| self.leases(lease));
        let request = GiveBack { relay: name_of(relay), lanes, ends: true };
        self.bench.store.give_back_lanes(request).await
    }

    /// Everything behind a cursor: of one sink, or of all but those that lag.
    pub(super) async fn read(
        &mut self,
        lease: usize,
        cursor: usize,
        of: Option<&'static str>,
        lags: &[Behind],
    ) -> Called<Vec<Seen>> {
        let after = self.id(cursor);
        let places = self.gained[lease].keys().map(|lane| Place { lane: *lane, after }).collect();
        let mut reader = Reader { places, most: 5, ..Reader::default() };
        match of {
            Some(sink) => (reader.name, reader.takes) = (sink.to_owned(), Some(topics_of(sink))),
            None => reader.leaves = lags.iter().map(|lag| topics_of(lag.sink)).collect(),
        }
        let mut messages = Vec::new();
        loop {
            let request = ClaimRequest {
                epoch: self.epoch.clone(),
                readers: vec![reader.clone()],
                most_bytes: 1 << 20,
                ..ClaimRequest::default()
            };
            let mut claim = self.bench.store.claim_messages(request).await?;
            let reading = claim.readings.remove(0);
            messages.extend(reading.messages);
            if !claim.held_back && !reading.more {
                break;
            }
            advance(&mut reader, reading.read_to);
        }
        Ok(messages.into_iter().map(|message| self.seen(message)).collect())
    }

    /// What is due, and whether there is something that will be, and how soon.
    pub(super) async fn due(
        &mut self,
        lease: usize,
        under_way: Vec<usize>,
    ) -> Called<(Vec<Seen>, Option<bool>)> {
        let request = ClaimRequest {
            epoch: self.epoch.clone(),
            lanes: self.gained[lease].keys().copied().collect(),
            under_way: under_way.into_iter().map(|name| self.messages[name]).collect(),
            most_due: 1_000,
            most_bytes: 1 << 20,
            ..ClaimRequest::default()
        };
        let claim = self.bench.store.claim_messages(request).await?;
        let due = claim.due.into_iter().map(|message| self.seen(message)).collect();
        Ok((due, claim.next_due.map(is_soon)))
    }

    /// How many lanes were late, and which keys are free, by sink.
    pub(super) async fn settle(
        &self,
        settling: &Settling,
    ) -> Called<(usize, BTreeSet<(String, KeyHash)>)> {
        let lags: Vec<Lag> = settling.lags.iter().map(|lag| self.lag(lag)).collect();
        let cursor = self.id(settling.cursor);
        let progress = |(lane, fence): (&Lane, &Fence)| Progress {
            lane: *lane,
            fence: *fence,
            cursor,
            lags: lags.clone(),
            before: None,
        };
        let settlement = Settlement {
            epoch: self.epoch.clone(),
            number: 0,
            lanes: self.gained[settling.lease].iter().map(progress).collect(),
            aside: settling.aside.iter().map(|set| self.set_aside(set)).collect(),
            done: settling.done.iter().map(|name| self.place(*name)).collect(),
        };
        let settled = self.bench.store.settle_messages(settlement).await?;
        let freed = |key: HeldKey| (key.sink, key.key);
        Ok((settled.late.len(), settled.freed.into_iter().map(freed).collect()))
    }

    fn lag(&self, lag: &Behind) -> Lag {
        let (sink, cursor) = (lag.sink.to_owned(), self.id(lag.cursor));
        Lag { sink, topics: topics_of(lag.sink), cursor }
    }

    fn place(&self, name: usize) -> (Lane, Position) {
        (self.read[&name].lane, self.messages[name])
    }

    fn set_aside(&self, (name, sink, aside): &(usize, String, Aside)) -> SetAside {
        let message = &self.read[name];
        SetAside {
            lane: message.lane,
            position: message.position,
            topic: message.topic.clone(),
            key: message.key_hash(),
            sink: sink.clone(),
            aside: aside.clone(),
        }
    }

    pub(super) async fn retry_dead(&self, which: Selection) -> Called<u64> {
        self.bench.store.retry_dead(which, &AuditLine::default()).await
    }

    pub(super) async fn drop_dead(&self, which: Selection) -> Called<u64> {
        self.bench.store.drop_dead(which, &AuditLine::default()).await
    }

    pub(super) async fn observe(&self) -> Called<Observed> {
        let named = |id: &MessageId| MessageId::number(self.name(position(id)) as i64);
        let stuck = |stuck: Stuck| Stuck {
            id: named(&stuck.id),
            due_in: stuck.due_in.map(|due| if is_soon(due) { AT_ONCE } else { LATER }),
            ..stuck
        };
        let topic =
            |topic: TopicStatus| TopicStatus { oldest: topic.oldest.map(|_| AT_ONCE), ..topic };
        let group = |group: DeadGroup| DeadGroup {
            first: named(&group.first),
            last: named(&group.last),
            ..group
        };
        let query = StuckQuery { limit: 10_000, ..StuckQuery::default() };
        let status = self.bench.store.outbox().await?;
        Ok(Observed {
            stuck: self.bench.store.stuck(query).await?.into_iter().map(stuck).collect(),
            topics: status.topics.into_iter().map(topic).collect(),
            relays: status.relays,
            dead: self.bench.store.dead_groups().await?.into_iter().map(group).collect(),
        })
    }
}

fn position(id: &MessageId) -> Position {
    id.as_number().map(Position).expect("a log numbers its messages")
}

fn length(lasts: bool) -> Duration {
    if lasts { LATER } else { AT_ONCE }
}

fn is_soon(due: Duration) -> bool {
    due < LATER / 2
}

fn name_of(relay: usize) -> WorkerId {
    WorkerId(format!("relay {relay}"))
}

/// Settles everything as done, and returns how far the outbox is. Nobody else has lanes.
async fn sweep(bench: &Bench) -> i64 {
    let mut relay = Relay::start(bench, "sweeper").await;
    assert_eq!(relay.lanes.len(), 64, "nobody else has lanes");
    let read = relay.read().await;
    let lowest = relay.lanes.values().map(|held| held.cursor).max().unwrap_or(0);
    let last = read.last().map_or(lowest, |message| message.position.0.max(lowest));
    let mut stuck = Vec::new();
    for one in bench.all_stuck().await {
        let stored = bench.store.message(one.id).await.expect("look for a message");
        stuck.extend(stored.map(|stored| stored.message));
    }
    let step = stuck.iter().fold(relay.step(), |step, message| step.done(message));
    step.to(Position(last)).lags(&[]).send().await;
    relay.end().await;
    last
}
