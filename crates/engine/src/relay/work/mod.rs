//! The loop: carries out what the flow decides.

mod act;
mod check;
mod claim;
mod finish;
mod places;
mod settle;
mod share;

pub use settle::purge;

use super::{
    counts::Counts,
    flow::Flow,
    group::Group,
    options::RelayOptions,
    plan::{Plan, PlannedSink},
    reading::Asked,
    trouble::Notes,
};
use crate::{
    Stop, UnfitLease,
    backoff::Backoff,
    deliver::{Destinations, Sent, Trouble, WallClock},
};
use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};
use tidegate_core::{
    OutboxStore, StoreError,
    outbox::{Claim, KeyHash, Reads, Settled, Shared},
};
use tidegate_pacer::{OutOfRange, Statistics};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

/// The first pause after a look that found nothing; it doubles.
const SHORTEST_POLL: Duration = Duration::from_millis(5);
/// What is done is settled after so long at the latest, together with what was done meanwhile; at once if
/// nothing else is under way.
const FLUSH: Duration = Duration::from_millis(4);
/// Lanes without messages move on, too, but nobody waits for it.
const IDLE_FLUSH: Duration = Duration::from_secs(1);

/// Delivers the messages of an outbox.
pub struct Relay {
    pub(super) store: Arc<dyn OutboxStore>,
    plan: Arc<Plan>,
    /// For each sink, the ways to its destinations.
    channels: Vec<Destinations>,
    pub(super) options: RelayOptions,
    watch: watch::Sender<RelayWatch>,
}

/// How a relay stands, for people.
#[derive(Clone, Debug, Default)]
pub struct RelayWatch {
    /// What became of messages so far.
    pub counts: Counts,
    /// How many lanes it has.
    pub lanes: usize,
    /// How many relays live.
    pub relays: usize,
    /// By sink.
    pub sinks: Vec<SinkWatch>,
}

/// How a relay stands with one sink.
#[derive(Clone, Debug, Default)]
pub struct SinkWatch {
    /// Its name.
    pub name: String,
    /// Messages in memory.
    pub queued: usize,
    /// Groups on their way.
    pub groups: usize,
    /// Why the sink is not there, if it is not.
    pub absence: Option<String>,
}

/// What a relay did.
#[derive(Clone, Debug)]
pub struct RelayReport {
    /// What became of messages.
    pub counts: Counts,
    /// What was sent, by sink.
    pub sent: Vec<(String, Sent)>,
    /// Sinks that take nothing any more, with the reason. Their messages wait.
    pub gone: Vec<(String, String)>,
}

/// Why a relay ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The store failed in a way that waiting does not mend.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Its lease is too short or too long. Nothing was done.
    #[error(transparent)]
    Lease(#[from] UnfitLease),
    /// A part of it panicked: what it knows may be wrong. Whoever gets its lanes goes on.
    #[error("a part of the relay ended ({0}): start it again")]
    Ended(JoinError),
}

/// What has happened.
enum Event {
    Shared(Result<Shared, StoreError>),
    Claimed(Result<Claim, StoreError>, Asked),
    Settled(Result<Settled, StoreError>),
    Sent(Arc<Group>),
    Published,
    GivenBack,
    /// Something that nobody waits for.
    Done,
}

impl Relay {
    /// A relay for a plan. Nothing is sent yet.
    pub fn new(
        store: Arc<dyn OutboxStore>,
        plan: Plan,
        options: RelayOptions,
    ) -> Result<Self, OutOfRange> {
        let clock = WallClock::start();
        let channel = |planned: &PlannedSink| {
            Destinations::new(planned.sink.clone(), planned.pacer.clone(), clock)
        };
        let channels = plan.sinks.iter().map(channel).collect::<Result<_, OutOfRange>>()?;
        let watch = watch::Sender::default();
        Ok(Self { store, plan: Arc::new(plan), channels, options, watch })
    }

    /// How it stands, as it changes.
    pub fn watch(&self) -> watch::Receiver<RelayWatch> {
        self.watch.subscribe()
    }

    /// The sinks that are in trouble. That one puts messages off is trouble after this time.
    pub fn troubles(&self, stalled_after: Duration) -> Vec<(String, Trouble)> {
        let sinks = self.plan.sinks.iter().zip(&self.channels);
        let trouble = |(planned, channels): (&PlannedSink, &Destinations)| {
            Some((planned.name.clone(), channels.trouble(stalled_after)?))
        };
        sinks.filter_map(trouble).collect()
    }

    /// How it was told to work.
    pub fn options(&self) -> &RelayOptions {
        &self.options
    }

    /// Where the pace of each sink stands.
    pub fn statistics(&self) -> Vec<(String, Vec<Statistics>)> {
        let names = self.plan.sinks.iter().map(|sink| sink.name.clone());
        names.zip(self.channels.iter().map(Destinations::statistics)).collect()
    }

    /// Delivers until a stop is asked for, or until nothing is left if the options say so. Afterwards
    /// everything that was delivered is settled, and all lanes are given back.
    pub async fn run(&self, stop: Stop) -> Result<RelayReport, RelayError> {
        UnfitLease::check(self.options.lease)?;
        let mut work = Work::new(self, stop);
        let mut notes = Notes::new(self);
        let ended = tokio::select! {
            biased;
            ended = work.until_done() => ended,
            never = notes.keep() => match never {},
        };
        work.finish().await;
        notes.end().await;
        ended?;
        let named = || self.plan.sinks.iter().map(|sink| sink.name.clone()).zip(&self.channels);
        let sent = named().map(|(name, channels)| (name, channels.sent())).collect();
        let gone = named().filter(|(_, channels)| channels.is_gone());
        let gone = gone.filter_map(|(name, channels)| Some((name, channels.absence()?))).collect();
        Ok(RelayReport { counts: work.flow.counts, sent, gone })
    }
}

/// One run of a relay.
struct Work<'r> {
    relay: &'r Relay,
    flow: Flow,
    stop: Stop,
    events: JoinSet<Event>,
    lanes: Lanes,
    look: Look,
    settle_at: Option<Instant>,
    /// When a destination that is not there is tried again.
    try_at: Option<Instant>,
    /// Since when everything is done but what other relays have no route for.
    unrouted_since: Option<Instant>,
    /// It is not known what became of the last settlement, and never will be.
    settle_failed: bool,
    retain_at: Instant,
    /// For each sink, the groups on their way.
    sending: Vec<Vec<Arc<Group>>>,
    in_flight: Arc<AtomicUsize>,
}

/// When lanes are shared out again.
struct Lanes {
    sharing: bool,
    /// When they were asked for last.
    asked: Instant,
    next: Instant,
    /// Until when the lanes are surely this relay's.
    until: watch::Sender<Instant>,
    /// How often groups were called back.
    recalled: watch::Sender<u64>,
    /// How many times lanes are being given back.
    giving: usize,
    relays: usize,
    backoff: Backoff,
}

/// When to look for messages again.
struct Look {
    looking: bool,
    next: Instant,
    pause: Duration,
    backoff: Backoff,
    held_back_since: Option<Instant>,
    holder_named: Option<Instant>,
    /// It was said what a drain waits for.
    wait_told: bool,
    /// The last look found nothing, and nothing will be due.
    nothing_left: bool,
    /// Something was set aside since the look began: it may have missed it.
    missed: bool,
}

impl<'r> Work<'r> {
    fn new(relay: &'r Relay, stop: Stop) -> Self {
        let now = Instant::now();
        let noise = KeyHash::of(&relay.options.relay.0).0 as u64;
        let mut events = JoinSet::new();
        let store = relay.store.clone();
        events.spawn(async move { published(store).await });
        let mut flow = Flow::new(relay.plan.clone());
        flow.stalled_after = relay.options.stalled_after;
        flow.by_state = relay.store.outbox_capabilities().reads == Reads::ByState;
        Self {
            relay,
            flow,
            stop,
            events,
            lanes: Lanes {
                sharing: false,
                asked: now,
                next: now,
                until: watch::Sender::new(now),
                recalled: watch::Sender::new(0),
                giving: 0,
                relays: 1,
                backoff: Backoff::new(noise),
            },
            look: Look {
                looking: false,
                next: now,
                pause: SHORTEST_POLL,
                backoff: Backoff::new(noise),
                held_back_since: None,
                holder_named: None,
                wait_told: false,
                nothing_left: false,
                missed: false,
            },
            settle_at: None,
            try_at: None,
            unrouted_since: None,
            settle_failed: false,
            retain_at: now,
            sending: relay.channels.iter().map(|_| Vec::new()).collect(),
            in_flight: Arc::default(),
        }
    }

    async fn until_done(&mut self) -> Result<(), RelayError> {
        loop {
            if self.stop.is_stopped() {
                return Ok(());
            }
            self.share();
            self.send();
            self.settle();
            self.retain();
            if self.relay.options.drain && self.is_drained().await? {
                return Ok(());
            }
            self.claim();
            self.show();
            let timer = self.next_timer();
            tokio::select! {
                biased;
                () = self.stop.stopped() => return Ok(()),
                Some(event) = self.events.join_next() => self.happened(event)?,
                () = sleep_until(timer) => {}
            }
            // What has happened meanwhile is taken in before anything is decided anew.
            while let Some(event) = self.events.try_join_next() {
                self.happened(event)?;
            }
        }
    }

    fn happened(&mut self, event: Result<Event, JoinError>) -> Result<(), RelayError> {
        let now = Instant::now();
        match event {
            Ok(Event::Shared(answer)) => self.shared(answer, now)?,
            Ok(Event::Claimed(answer, asked)) => self.claimed(answer, &asked, now)?,
            Ok(Event::Settled(answer)) => self.settled(answer, now)?,
            Ok(Event::Sent(group)) => self.sent(group, now),
            Ok(Event::Published) => {
                self.look.next = now;
                let store = self.relay.store.clone();
                self.events.spawn(async move { published(store).await });
            }
            Ok(Event::GivenBack) => self.lanes.giving -= 1,
            Ok(Event::Done) => {}
            Err(panic) => return Err(RelayError::Ended(panic)),
        }
        Ok(())
    }

    fn next_timer(&self) -> Instant {
        let look = (!self.look.looking).then_some(self.look.next);
        let share = (!self.lanes.sharing).then_some(self.lanes.next);
        let settle = self.settle_at.filter(|_| !self.flow.is_settling());
        let evict = self.flow.next_eviction();
        let soonest = [look, share, settle, evict, self.try_at].into_iter().flatten().min();
        soonest.unwrap_or_else(|| Instant::now() + Duration::from_secs(1))
    }

    fn show(&self) {
        let sinks = self.relay.plan.sinks.iter().enumerate().map(|(at, planned)| SinkWatch {
            name: planned.name.clone(),
            queued: self.flow.queues[at].load().0,
            groups: self.sending[at].len(),
            absence: self.relay.channels[at].absence(),
        });
        self.relay.watch.send_replace(RelayWatch {
            counts: self.flow.counts,
            lanes: self.flow.lanes.len(),
            relays: self.lanes.relays,
            sinks: sinks.collect(),
        });
    }
}

async fn published(store: Arc<dyn OutboxStore>) -> Event {
    store.published().await;
    Event::Published
}
