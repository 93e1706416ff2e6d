//! Holding callers back: the thin shell around the decisions.

mod permit;
mod queue;

use crate::{
    Options, OutOfRange, Time,
    connection::{Connection, Wait},
    remember::Remembered,
    statistics::{Binding, Statistics},
};
pub use permit::Permit;
pub use queue::{Clock, TooLong};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use tokio::sync::{Notify, Semaphore};

/// All that one process sends to one service: every gate draws on the same connections.
#[derive(Clone)]
pub struct Pacer(Arc<Shared>);

struct Shared {
    options: Arc<Options>,
    connections: Vec<Mutex<Connection>>,
    /// One queue per operation class, so that a class that has to wait holds up no other.
    classes: RwLock<Vec<Arc<Class>>>,
}

struct Class {
    name: String,
    /// Whose turn it is: the first in line waits for room, the others behind it.
    turn: Semaphore,
    /// There may be room.
    room: Notify,
}

impl Pacer {
    /// A pacer for these connections.
    pub fn new(
        options: Options,
        connections: impl IntoIterator<Item = String>,
    ) -> Result<Self, OutOfRange> {
        options.check()?;
        let options = Arc::new(options);
        let connection = |name| Mutex::new(Connection::new(name, options.clone()));
        let connections = connections.into_iter().map(connection).collect();
        Ok(Self(Arc::new(Shared { options, connections, classes: RwLock::default() })))
    }

    /// The gate for an operation class. Classes share the connections and their budgets; each has its
    /// own level.
    pub fn gate(&self, class: &str) -> Gate {
        let mut classes = self.0.classes.write().expect("nothing panics while it holds the lock");
        let index = classes.iter().position(|known| known.name == class).unwrap_or_else(|| {
            let (turn, room) = (Semaphore::new(1), Notify::new());
            classes.push(Arc::new(Class { name: class.to_owned(), turn, room }));
            classes.len() - 1
        });
        Gate { pacer: self.clone(), index, class: classes[index].clone() }
    }

    fn connection(&self, index: usize) -> MutexGuard<'_, Connection> {
        self.0.connections[index].lock().expect("nothing panics while it holds the lock")
    }

    /// Tells the first in line of each class that there may be room.
    fn room_changed(&self) {
        let classes = self.0.classes.read().expect("nothing panics while it holds the lock");
        classes.iter().for_each(|class| class.room.notify_one());
    }
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
        let started = self.pacer.connection(connection).start(self.index, now)?;
        Ok(Permit::new(self.clone(), connection, started))
    }

    /// The unthrottled connection with the most room; if there is none, the wait that ends first.
    fn choose(&self, now: Time) -> Result<usize, Wait> {
        let connections = self.pacer.0.connections.len();
        if connections == 1 {
            return Ok(0);
        }
        let mut best: Option<(u32, usize)> = None;
        let mut soonest: Option<Wait> = None;
        for index in 0..connections {
            match self.pacer.connection(index).room(self.index, now) {
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
        let statistics = self.statistics(now);
        let open = statistics.iter().filter(|s| s.binding != Binding::RetryAfter);
        open.map(|statistics| statistics.limit).sum()
    }

    /// Whether a connection is inside a Retry-After.
    pub fn is_throttled(&self, connection: usize, now: Time) -> bool {
        self.pacer.connection(connection).is_throttled(now)
    }

    /// Until when all connections that are inside a Retry-After will have left it.
    pub fn throttled_until(&self) -> Time {
        let connections = 0..self.pacer.0.connections.len();
        let until = connections.map(|index| self.pacer.connection(index).blocked_until());
        until.max().unwrap_or_default()
    }

    /// Where each connection stands.
    pub fn statistics(&self, now: Time) -> Vec<Statistics> {
        let connections = 0..self.pacer.0.connections.len();
        let of = |index| self.pacer.connection(index).statistics(self.index, &self.class.name, now);
        connections.map(of).collect()
    }

    /// Takes one of so many equal parts of what each connection is known to allow: other processes
    /// take the rest.
    pub fn share(&self, among: u32) {
        let connections = 0..self.pacer.0.connections.len();
        connections.for_each(|index| self.pacer.connection(index).share(among));
        self.pacer.room_changed();
    }

    /// Learns all again.
    pub fn reset(&self, connection: usize, now: Time) {
        self.pacer.connection(connection).reset(self.index, now);
        self.pacer.room_changed();
    }

    /// What the next process should know.
    pub fn remembered(&self, now: Time) -> Vec<Remembered> {
        let connections = 0..self.pacer.0.connections.len();
        let of = |index| self.pacer.connection(index).remembered(self.index, &self.class.name, now);
        connections.map(of).collect()
    }

    /// Begins where an earlier process ended. What is too old, or of other connections, is passed over.
    pub fn recall(&self, remembered: &[Remembered], now: Time) {
        for index in 0..self.pacer.0.connections.len() {
            let mut connection = self.pacer.connection(index);
            let mine = remembered.iter().find(|known| {
                known.class == self.class.name && known.connection == connection.name()
            });
            if let Some(mine) = mine {
                connection.recall(self.index, mine, now);
            }
        }
        self.pacer.room_changed();
    }
}

/// Both end when an answer comes; the one that ends by itself first tells when to look again.
fn sooner(one: Wait, other: Wait) -> Wait {
    match (one.until, other.until) {
        (None, _) => other,
        (Some(a), Some(b)) if b < a => other,
        _ => one,
    }
}
