//! Holding callers back: the thin shell around the decisions.

mod permit;
mod queue;

use crate::{
    Options, OutOfRange, Time,
    connection::{Connection, Wait},
    options::within,
    remember::Remembered,
    statistics::{Binding, Statistics},
};
pub use permit::Permit;
pub use queue::{Clock, TooLong};
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use tokio::sync::{Notify, Semaphore};

/// All that one process sends to one service: every gate draws on the same connections.
#[derive(Clone)]
pub struct Pacer(Arc<Shared>);

struct Shared {
    options: Arc<Options>,
    connections: Vec<Mutex<Lane>>,
    /// One queue per operation class, so that a class that has to wait holds up no other. Taken when a
    /// gate is made, never when it is used.
    classes: Mutex<Classes>,
}

/// Operation classes, by numbers that are never used again.
#[derive(Default)]
struct Classes {
    next: usize,
    known: Vec<(usize, Arc<Class>)>,
}

/// A connection, and who may wait for it.
struct Lane {
    connection: Connection,
    classes: Vec<Arc<Class>>,
}

struct Class {
    name: String,
    /// Whose turn it is: the first in line waits for room, the others behind it.
    turn: Semaphore,
    /// There may be room.
    room: Notify,
    /// Whether somebody waits for room.
    waits: AtomicBool,
}

impl Pacer {
    /// A pacer for these connections.
    pub fn new(
        options: Options,
        connections: impl IntoIterator<Item = String>,
    ) -> Result<Self, OutOfRange> {
        options.check()?;
        let options = Arc::new(options);
        let lane = |name| {
            let connection = Connection::new(name, options.clone());
            Mutex::new(Lane { connection, classes: Vec::new() })
        };
        let connections: Vec<_> = connections.into_iter().map(lane).collect();
        within("number of connections", connections.len(), 1..=10_000)?;
        Ok(Self(Arc::new(Shared { options, connections, classes: Mutex::default() })))
    }

    /// The gate for an operation class. Classes share the connections and their budgets; each has its
    /// own level.
    pub fn gate(&self, class: &str) -> Gate {
        self.class(class, false)
    }

    /// The gate for one of several destinations on the connections: collections, topics, paths. Each has its
    /// own level, as a class has; all together have no more in flight than one class may have, and none
    /// can take all of it.
    pub fn gate_to(&self, class: &str) -> Gate {
        self.class(class, true)
    }

    fn class(&self, class: &str, is_destination: bool) -> Gate {
        let mut classes = locked(&self.0.classes);
        if let Some((index, class)) = classes.known.iter().find(|(_, known)| known.name == class) {
            return Gate { pacer: self.clone(), index: *index, class: class.clone() };
        }
        let (turn, room, waits) = (Semaphore::new(1), Notify::new(), AtomicBool::new(false));
        let class = Arc::new(Class { name: class.to_owned(), turn, room, waits });
        let index = classes.next;
        classes.next += 1;
        for mut lane in self.lanes() {
            lane.classes.push(class.clone());
            if is_destination {
                lane.connection.join(index);
            }
        }
        classes.known.push((index, class.clone()));
        Gate { pacer: self.clone(), index, class }
    }

    /// Forgets all that was learned about a class. Nothing of it is in flight.
    pub fn forget(&self, class: &str) {
        let mut classes = locked(&self.0.classes);
        let Some(at) = classes.known.iter().position(|(_, known)| known.name == class) else {
            return;
        };
        let (index, class) = classes.known.swap_remove(at);
        for mut lane in self.lanes() {
            lane.classes.retain(|known| !Arc::ptr_eq(known, &class));
            lane.connection.forget(index);
        }
    }

    fn lane(&self, index: usize) -> MutexGuard<'_, Lane> {
        locked(&self.0.connections[index])
    }

    fn lanes(&self) -> impl Iterator<Item = MutexGuard<'_, Lane>> {
        self.0.connections.iter().map(locked)
    }
}

impl Lane {
    /// Tells the first in line of each class that there may be room.
    fn room_changed(&self) {
        let waiting = self.classes.iter().filter(|class| class.waits.load(SeqCst));
        waiting.for_each(|class| class.room.notify_one());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds the lock")
}

/// Lets requests of one operation class through, as fast as the service can bear. Clones share all.
#[derive(Clone)]
pub struct Gate {
    pacer: Pacer,
    index: usize,
    class: Arc<Class>,
}

impl Gate {
    /// Starts a request now, on the connection with the most room, or says what holds it back.
    pub fn try_start(&self, now: Time) -> Result<Permit, Wait> {
        let connection = self.choose(now)?;
        let started = self.pacer.lane(connection).connection.start(self.index, now)?;
        Ok(Permit::new(self.clone(), connection, started))
    }

    /// The unthrottled connection with the most room; if there is none, the wait that ends first.
    fn choose(&self, now: Time) -> Result<usize, Wait> {
        if self.pacer.0.connections.len() == 1 {
            return Ok(0);
        }
        let mut best: Option<(u32, usize)> = None;
        let mut soonest: Option<Wait> = None;
        for (index, mut lane) in self.pacer.lanes().enumerate() {
            match lane.connection.room(self.index, now) {
                Ok(room) if best.is_none_or(|(most, _)| room > most) => best = Some((room, index)),
                Ok(_) => {}
                Err(wait) => soonest = Some(soonest.map_or(wait, |other| sooner(other, wait))),
            }
        }
        let nothing = Wait { binding: Binding::Nothing, until: None };
        best.map(|(_, index)| index).ok_or(soonest.unwrap_or(nothing))
    }

    /// How much may be in flight on all connections together that are not inside a Retry-After.
    pub fn limit(&self, now: Time) -> u32 {
        self.pacer.lanes().map(|mut lane| lane.connection.limit(self.index, now)).sum()
    }

    /// Whether a connection is inside a Retry-After.
    pub fn is_throttled(&self, connection: usize, now: Time) -> bool {
        self.pacer.lane(connection).connection.is_throttled(now)
    }

    /// Until when all connections that are inside a Retry-After will have left it.
    pub fn throttled_until(&self) -> Time {
        let until = self.pacer.lanes().map(|lane| lane.connection.blocked_until());
        until.max().unwrap_or_default()
    }

    /// Where each connection stands.
    pub fn statistics(&self, now: Time) -> Vec<Statistics> {
        let name = &self.class.name;
        self.pacer
            .lanes()
            .map(|mut lane| lane.connection.statistics(self.index, name, now))
            .collect()
    }

    /// Takes one of so many equal parts of what each connection is known to allow: other processes
    /// take the rest.
    pub fn share(&self, among: u32, now: Time) {
        for mut lane in self.pacer.lanes() {
            lane.connection.share(among, now);
            lane.room_changed();
        }
    }

    /// The service wants to be left alone on a connection until then.
    pub fn told(&self, connection: usize, until: Time) {
        self.pacer.lane(connection).connection.told(until);
    }

    /// Sends nothing on a connection before this time: another process was asked to leave it alone.
    pub fn hold(&self, connection: &str, until: Time) {
        for mut lane in self.pacer.lanes().filter(|lane| lane.connection.name() == connection) {
            lane.connection.hold(until);
        }
    }

    /// Learns all again.
    pub fn reset(&self, connection: usize, now: Time) {
        let mut lane = self.pacer.lane(connection);
        lane.connection.reset(self.index, now);
        lane.room_changed();
    }

    /// What the next process should know.
    pub fn remembered(&self, now: Time) -> Vec<Remembered> {
        let name = &self.class.name;
        self.pacer
            .lanes()
            .map(|mut lane| lane.connection.remembered(self.index, name, now))
            .collect()
    }

    /// Begins where earlier processes ended; what was remembered last comes first. What is too old, or
    /// of other connections, is passed over.
    pub fn recall(&self, remembered: &[Remembered], now: Time) {
        for mut lane in self.pacer.lanes() {
            let Lane { connection, .. } = &mut *lane;
            let mine = remembered.iter().filter(|known| known.connection == connection.name());
            let mine: Vec<&Remembered> = mine.collect();
            // Whatever was asked of it: a Retry-After is for all.
            let untils = mine.iter().map(|known| known.at.saturating_add(known.retry_after));
            untils.for_each(|until| connection.told(until));
            let limit = mine.iter().find(|known| known.class == self.class.name && known.throttled);
            if let Some(known) = limit {
                connection.recall(self.index, known, now);
            }
            lane.room_changed();
        }
    }
}

/// Both end when an answer comes; the one that ends by itself first tells when to look again. The
/// service wants to be left alone only if it does on both.
fn sooner(one: Wait, other: Wait) -> Wait {
    let until = match (one.until, other.until) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let binding = if one.is_asked() { other.binding } else { one.binding };
    Wait { binding, until }
}
