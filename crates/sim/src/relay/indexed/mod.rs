//! A store that is read by state, through an index that lags: what DynamoDB is.
//!
//! A message is one item, named by a text and dated by its publisher's clock. What is pending is found in an index that
//! shows a message some time after it was stored, and still shows it some time after it was marked. Nothing but one
//! item at a time is written at once: marks are not fenced, what is set aside is. Lanes are leased in one item, in which
//! every relay has a beat; whose beat stands still for longer than its lease is gone, by the clock of whoever looks.
//!
//! Three things make up for the index. Messages younger than `min_age` are not read, so that none comes to light before
//! one that was read. While the marks of a lane's former holder may not be in the index, a consistent read tells what
//! is pending. What this relay has marked itself, it knows.

mod mark;
mod people;
mod read;
mod share;
mod table;

pub use table::Table;

use super::{
    dice::ms,
    history::{Event, position},
    scenario::{MessagePlan, one_of},
    wire::Wire,
};
use async_trait::async_trait;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard},
    time::Duration,
};
use table::Leases;
use tidegate_core::{
    Fence, MessageId, Position, StoreError,
    outbox::{
        GiveBack, Habits, Ids, KeyOrder, Lane, LaneLease, Lines, Listing, OutboxCapabilities,
        Publishing, Reads, Relays, Route, Settled, Share, Shared, StateOutbox, TroubleNote,
        WhoseClock,
        by_state::{AsideBook, AsideRow, Marks, Pending, PendingRequest, ReadMessages, Row},
    },
};

/// A request takes effect within this, or never.
const REQUEST: Duration = Duration::from_millis(1_200);
/// Timers are coarse.
const SLACK: Duration = Duration::from_millis(10);

/// How the index is, and how it is made up for.
#[derive(Clone, Debug)]
pub struct IndexPlan {
    /// The index shows a change after this, at the latest.
    pub lag: Duration,
    /// No two clocks are further apart.
    pub skew: Duration,
    /// How old messages are when they are read.
    pub min_age: Duration,
    /// How many messages a page of the index has.
    pub page: usize,
    /// What a relay does wrong, to see that it shows.
    pub shortcut: Option<Shortcut>,
    /// By place in the scenario: the name of each message, and how far its publisher's clock is ahead.
    pub messages: Vec<(String, Duration)>,
    /// The same for the clock of each life.
    pub relays: Vec<Duration>,
}

/// Something that must not be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortcut {
    /// Messages are read as soon as the index shows them.
    NoMinAge,
    /// What the index shows of lanes just gained is believed.
    NoVerifying,
    /// Messages are marked when they are read.
    MarkedFirst,
    /// What is set aside is written last first.
    LastAsideFirst,
    /// What is done is marked last first.
    LastMarkFirst,
    /// What is set aside is written before what is done is marked.
    AsideBeforeDone,
}

impl IndexPlan {
    /// An index that is always right.
    pub fn calm() -> Self {
        Self {
            lag: Duration::ZERO,
            skew: Duration::ZERO,
            min_age: Duration::ZERO,
            page: 100,
            shortcut: None,
            messages: Vec::new(),
            relays: Vec::new(),
        }
    }

    /// Some index, in a world with these messages and so many lives of relays.
    pub fn random(rng: &mut ChaCha8Rng, messages: &[MessagePlan], lives: usize) -> Self {
        let (lag, skew) = (one_of(rng, &[0, 50, 400, 1_500]), one_of(rng, &[0, 20, 300, 1_000]));
        let extra = one_of(rng, &[0, 100]);
        let mut ahead = || ms(rng.random_range(0..=skew));
        let publishers = [ahead(), ahead(), ahead()];
        let relays = (0..lives).map(|_| ahead()).collect();
        let messages: Vec<_> = messages
            .iter()
            .map(|it| (it.at, publishers[rng.random_range(0..3)], rng.random::<u32>()))
            .collect();
        // Their numbers are the order of their dates, and of their names among those of one date.
        let mut order: Vec<usize> = (0..messages.len()).collect();
        let place = |n: usize| (messages[n].0 + messages[n].1, messages[n].2);
        order.sort_by_key(|n| place(*n));
        let mut named = vec![(String::new(), Duration::ZERO); messages.len()];
        for (number, n) in order.into_iter().enumerate() {
            named[n] = (format!("{:08x}-{number}", messages[n].2), messages[n].1);
        }
        Self {
            lag: ms(lag),
            skew: ms(skew),
            min_age: ms(lag + skew + extra),
            page: one_of(rng, &[3, 10, 1_000]),
            shortcut: None,
            messages: named,
            relays,
        }
    }

    /// Whether no message comes to light before one that was read.
    pub fn keeps_order(&self) -> bool {
        self.min_age >= self.lag + self.skew
    }
}

/// Somebody's access to the table.
pub struct Client {
    table: Table,
    plan: IndexPlan,
    /// `None`: nothing goes wrong, and nothing is noted.
    wire: Option<Wire>,
    /// How far its clock is ahead.
    ahead: Duration,
    read: ReadMessages,
    own: Mutex<Own>,
}

/// What a client remembers.
#[derive(Default)]
struct Own {
    /// By relay, its beat, and since when it has stood there.
    seen: BTreeMap<String, (u64, Duration)>,
    /// The lanes, and when each was gained.
    lanes: BTreeMap<Lane, (Fence, Duration)>,
    /// Until when they are surely this client's.
    until: Duration,
    routes: Vec<Route>,
    book: AsideBook,
    /// What the table has of the book.
    stored: BTreeMap<Position, AsideRow>,
    /// How often people had changed a lane when it was loaded.
    changes: BTreeMap<Lane, u64>,
    /// Grows whenever the book may not be what was loaded meanwhile.
    writes: u64,
    /// What is surely not pending, until the index knows.
    over: HashMap<Row, Duration>,
}

impl Client {
    /// The access of a relay.
    pub fn new(table: &Table, plan: &IndexPlan, wire: Option<Wire>, ahead: Duration) -> Self {
        Self {
            table: table.clone(),
            plan: plan.clone(),
            wire,
            ahead,
            read: ReadMessages::default(),
            own: Mutex::default(),
        }
    }

    /// By its own clock.
    fn now(&self) -> Duration {
        self.table.now() + self.ahead
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().expect("nothing panics while it holds the lock")
    }

    /// How old messages are when they are read.
    fn min_age(&self) -> Duration {
        if self.is(Shortcut::NoMinAge) { Duration::ZERO } else { self.plan.min_age }
    }

    fn is(&self, shortcut: Shortcut) -> bool {
        self.plan.shortcut == Some(shortcut)
    }

    fn note(&self, event: Event) {
        if let Some(wire) = &self.wire {
            wire.note(event);
        }
    }

    /// One request, which takes effect at once.
    async fn request<T>(
        &self,
        operation: &'static str,
        effect: impl FnOnce(&Table) -> T + Send,
    ) -> Result<T, StoreError> {
        let effect = async { Ok(effect(&self.table)) };
        match &self.wire {
            Some(wire) => wire.call(operation, effect).await,
            None => effect.await,
        }
    }

    async fn leases(&self) -> Result<Leases, StoreError> {
        self.request("leases", |table| table.content().leases.clone()).await
    }
}

impl Own {
    fn holds(&self, lease: LaneLease) -> bool {
        self.lanes.get(&lease.lane).is_some_and(|(fence, _)| *fence == lease.fence)
    }

    /// Takes in what the table has of a lane. Returns nothing that is not in the book then.
    fn load(&mut self, rows: Vec<(Position, AsideRow)>, changes: Vec<(Lane, u64)>, now: Duration) {
        let lanes: Vec<Lane> = changes.iter().map(|(lane, _)| *lane).collect();
        self.forget(|lane| lanes.contains(&lane));
        self.changes.extend(changes);
        for (position, row) in rows {
            self.stored.insert(position, row.clone());
            self.book.insert(position, row);
        }
        let routes = self.routes.clone();
        lanes.into_iter().for_each(|lane| drop(self.book.gain(lane, &routes, now)));
    }

    fn forget(&mut self, lanes: impl Fn(Lane) -> bool) {
        self.book.forget(&lanes);
        self.stored.retain(|_, row| !lanes(row.lane));
        self.changes.retain(|lane, _| !lanes(*lane));
        self.writes += 1;
    }
}

/// What histories know a message by: the number at the end of its name.
fn number(row: &Row) -> Position {
    position(&MessageId::text(row.clone()))
}

#[async_trait]
impl StateOutbox for Client {
    fn state_capabilities(&self) -> OutboxCapabilities {
        OutboxCapabilities {
            name: "indexed",
            reads: Reads::ByState,
            order: match self.plan.keeps_order() {
                true => KeyOrder::Promised,
                false => {
                    KeyOrder::If("messages are read when they are older than lag and skew".into())
                }
            },
            clock: WhoseClock::Relay,
            relays: Relays::Many,
            largest_transaction: Some(100),
            publishing: Some(Publishing::of_all()),
            lines: Lines::InStore,
            ids: Ids::Published,
            listing: Listing::ById,
            retention: true,
            batches: false,
            habits: Habits::default(),
        }
    }

    fn read_messages(&self) -> &ReadMessages {
        &self.read
    }

    async fn share_state(&self, request: Share) -> Result<Shared, StoreError> {
        self.share(request).await
    }

    async fn read_pending(&self, request: PendingRequest) -> Result<Pending, StoreError> {
        self.read(request).await
    }

    async fn mark(&self, marks: Marks) -> Result<Settled, StoreError> {
        self.settle(marks).await
    }

    async fn give_back_state(&self, request: GiveBack) -> Result<(), StoreError> {
        self.give_back(request).await
    }

    async fn note_troubled(&self, note: TroubleNote) -> Result<(), StoreError> {
        let now = self.table.now();
        let mut content = self.table.content();
        content.notes.retain(|(known, _)| known.relay != note.relay);
        content.notes.push((note, now));
        Ok(())
    }
}
