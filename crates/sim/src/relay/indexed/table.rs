//! The table: what one request does to it happens at once; what several do, does not.

use crate::relay::dice::dice;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tidegate_core::{
    Fence, Message, MessageId, NewMessage, Position,
    outbox::{
        AuditLine, KeyHash, LANES, Lane, LaneLease, Origin, SetAside, TroubleNote,
        by_state::{AsideRow, Row},
    },
};

/// In how many parts a topic is indexed.
pub const SHARDS: u64 = 3;

/// Everybody's table. Clones share it.
#[derive(Clone)]
pub struct Table {
    content: Arc<Mutex<Content>>,
    clock: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// All that is stored.
pub struct Content {
    pub items: BTreeMap<Row, Item>,
    pub leases: Leases,
    /// By lane, how often people have changed what was set aside there.
    pub changes: BTreeMap<Lane, u64>,
    pub limit: Option<u64>,
    pub audit: Vec<AuditLine>,
    pub notes: Vec<(TroubleNote, Duration)>,
    pub seals: BTreeMap<i64, BTreeSet<Row>>,
    pub published: u64,
    /// The index shows a change after this, at the latest.
    lag: Duration,
    dice: ChaCha8Rng,
}

/// Who has which lane: one item.
#[derive(Clone, Default)]
pub struct Leases {
    /// How often it was written.
    pub version: u64,
    pub last_fence: i64,
    /// By relay: its beat, and for how long it may stand still.
    pub relays: BTreeMap<String, (u64, Duration)>,
    pub lanes: BTreeMap<Lane, (String, Fence)>,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Item {
    pub row: Row,
    pub lane: Lane,
    pub new: NewMessage,
    /// By its publisher's clock.
    pub created: Duration,
    pub state: State,
    /// When the index shows it, and no more.
    shown: (Duration, Duration),
}

#[derive(Clone, Debug)]
pub enum State {
    Pending,
    /// Which settlement set it aside, with the lane's fence.
    Aside(Position, AsideRow, (Fence, u64)),
    Done,
}

/// What was set aside in some lanes, and how often people have changed each.
pub type Loaded = (Vec<(Position, AsideRow)>, Vec<(Lane, u64)>);

/// What became of a write that needs a lease.
pub enum Written<T> {
    /// The lane is somebody else's. Nothing was changed.
    Late,
    Is(T),
}

impl Item {
    /// In which order messages are read.
    pub fn place(&self) -> (Duration, Row) {
        (self.created, self.row.clone())
    }

    pub fn aside(&self) -> Option<(Position, &AsideRow)> {
        match &self.state {
            State::Aside(position, row, _) => Some((*position, row)),
            State::Pending | State::Done => None,
        }
    }

    pub fn message(&self, origin: Origin) -> Message {
        Message {
            id: MessageId::text(self.row.clone()),
            position: self.aside().map(|(position, _)| position).unwrap_or_default(),
            name: self.row.to_string(),
            lane: self.lane,
            topic: self.new.topic.clone(),
            key: self.new.key.clone(),
            headers: self.new.headers.clone(),
            payload: self.new.payload.clone(),
            published_ms: self.created.as_millis() as i64,
            origin,
            damage: None,
        }
    }

    fn shard(&self) -> u64 {
        KeyHash::of(&self.row).0 as u64 % SHARDS
    }
}

impl Table {
    /// An empty table, whose index shows changes after `lag` at the latest.
    pub fn new(
        seed: u64,
        lag: Duration,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        let content = Content {
            items: BTreeMap::new(),
            leases: Leases::default(),
            changes: BTreeMap::new(),
            limit: None,
            audit: Vec::new(),
            notes: Vec::new(),
            seals: BTreeMap::new(),
            published: 0,
            lag,
            dice: dice(seed, [0x1a6, 0, 0]),
        };
        Self { content: Arc::new(Mutex::new(content)), clock: Arc::new(clock) }
    }

    pub(super) fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("nothing panics while it holds the lock")
    }

    /// The true time.
    pub fn now(&self) -> Duration {
        (self.clock)()
    }

    /// Stores a message that its publisher has named and dated.
    pub fn put(&self, row: &str, created: Duration, new: NewMessage) {
        let now = self.now();
        let mut content = self.content();
        let shown = (now + content.some_lag(), Duration::MAX);
        let hashed = new.key.as_deref().unwrap_or(row);
        let lane = Lane((KeyHash::of(hashed).0 as u64 % u64::from(LANES)) as u16);
        let (row, state): (Row, _) = (row.into(), State::Pending);
        content.items.insert(row.clone(), Item { row, lane, new, created, state, shown });
    }

    /// One page of the index of all topics, in no order, and whether it is all.
    pub fn scan(&self, page: usize) -> (Vec<Item>, bool) {
        let (now, content) = (self.now(), self.content());
        let mut shown = content.items.values().filter(|item| is_shown(item, now));
        let items = shown.by_ref().take(page).cloned().collect();
        (items, shown.next().is_none())
    }

    /// One page of a part of a topic, oldest first, and whether there is more.
    pub fn query(
        &self,
        (topic, shard): (&str, u64),
        after: Option<&(Duration, Row)>,
        page: usize,
    ) -> (Vec<Item>, bool) {
        let (now, content) = (self.now(), self.content());
        let mut found: Vec<&Item> = content.items.values().collect();
        found.retain(|item| {
            is_shown(item, now)
                && item.new.topic == topic
                && item.shard() == shard
                && after.is_none_or(|after| item.place() > *after)
        });
        found.sort_by_key(|item| item.place());
        let more = found.len() > page;
        (found.into_iter().take(page).cloned().collect(), more)
    }

    /// Topics that there are.
    pub fn topics(&self) -> BTreeSet<String> {
        self.content().items.values().map(|item| item.new.topic.clone()).collect()
    }

    /// Those among messages that are pending: a consistent read.
    pub fn pending(&self, rows: &[Row]) -> HashSet<Row> {
        let content = self.content();
        let is_pending = |row: &&Row| {
            content.items.get(*row).is_some_and(|item| matches!(item.state, State::Pending))
        };
        rows.iter().filter(is_pending).cloned().collect()
    }

    /// A pending message is done, whoever says so.
    pub fn mark(&self, row: &Row) {
        let now = self.now();
        let mut content = self.content();
        let until = now + content.some_lag();
        if let Some(item) = content.items.get_mut(row)
            && matches!(item.state, State::Pending)
        {
            item.state = State::Done;
            item.shown.1 = until;
        }
    }

    /// A message that was set aside is done.
    pub fn finish(&self, lease: LaneLease, row: &Row) -> Written<()> {
        let mut content = self.content();
        if !content.leases.holds(lease) {
            return Written::Late;
        }
        if let Some(item) = content.items.get_mut(row)
            && item.aside().is_some()
        {
            item.state = State::Done;
        }
        Written::Is(())
    }

    /// Sets a message aside, unless this settlement or a later one did so already. Returns how it stands then, if it
    /// is still to be delivered, and whether that is new.
    pub fn set_aside(
        &self,
        lease: LaneLease,
        number: u64,
        row: &Row,
        set: &SetAside,
        by_clock: Duration,
    ) -> Written<Option<(Position, AsideRow, bool)>> {
        let now = self.now();
        let mut content = self.content();
        if !content.leases.holds(lease) {
            return Written::Late;
        }
        let (until, by) = (now + content.some_lag(), (lease.fence, number));
        let Some(item) = content.items.get_mut(row) else { return Written::Is(None) };
        let is_new = match &mut item.state {
            State::Pending => {
                let new = AsideRow::new(row.clone(), set, by_clock);
                item.state = State::Aside(set.position, new, by);
                item.shown.1 = until;
                true
            }
            State::Aside(_, aside, before) => {
                let is_new = before.0 != lease.fence || before.1 < number;
                if is_new {
                    aside.set(set, by_clock);
                    *before = by;
                }
                is_new
            }
            State::Done => return Written::Is(None),
        };
        Written::Is(item.aside().map(|(position, aside)| (position, aside.clone(), is_new)))
    }

    /// Writes what follows for a message from what became of others.
    pub fn rewrite(&self, lease: LaneLease, position: Position, aside: &AsideRow) -> Written<()> {
        let mut content = self.content();
        if !content.leases.holds(lease) {
            return Written::Late;
        }
        if let Some(item) = content.items.get_mut(&aside.row)
            && let State::Aside(stored, row, _) = &mut item.state
            && *stored == position
        {
            row.clone_from(aside);
        }
        Written::Is(())
    }

    /// What was set aside in some lanes, with the number of changes that are in it.
    pub fn load(&self, lanes: &[Lane]) -> Loaded {
        let content = self.content();
        let of_lanes = content.items.values().filter(|item| lanes.contains(&item.lane));
        let aside = of_lanes.filter_map(Item::aside).map(|(at, row)| (at, row.clone()));
        let changes = |lane: &Lane| (*lane, content.changes.get(lane).copied().unwrap_or(0));
        (aside.collect(), lanes.iter().map(changes).collect())
    }

    /// The same for those among the lanes that were changed since.
    pub fn load_changed(&self, known: &BTreeMap<Lane, u64>) -> Loaded {
        let is_changed = |content: &Content, lane: &Lane, known: u64| {
            content.changes.get(lane).copied().unwrap_or(0) != known
        };
        let content = self.content();
        let changed = known.iter().filter(|(lane, known)| is_changed(&content, lane, **known));
        let changed: Vec<Lane> = changed.map(|(lane, _)| *lane).collect();
        drop(content);
        if changed.is_empty() { Default::default() } else { self.load(&changed) }
    }

    /// Writes the item of all leases, unless somebody else did since it was read.
    pub fn put_leases(&self, leases: Leases) -> bool {
        let mut content = self.content();
        let is_next = content.leases.version + 1 == leases.version;
        if is_next {
            content.leases = leases;
        }
        is_next
    }
}

impl Leases {
    pub fn holds(&self, lease: LaneLease) -> bool {
        self.lanes.get(&lease.lane).is_some_and(|(_, fence)| *fence == lease.fence)
    }
}

impl Content {
    fn some_lag(&mut self) -> Duration {
        let most = self.lag.as_millis() as u64;
        Duration::from_millis(self.dice.random_range(0..=most))
    }
}

fn is_shown(item: &Item, now: Duration) -> bool {
    item.shown.0 <= now && now < item.shown.1
}
