//! What happened at the store and at the sinks, in order.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tidegate_core::{
    MessageId, Position,
    outbox::{Aside, Lane, LaneLease, SetAside},
    sink::Outcome,
};
use tokio::time::Instant;

/// How far a lane is: its cursor, and those of sinks that lag.
pub type Far = (Lane, i64, Vec<(String, i64)>);

/// Something that took effect.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message came in.
    Published {
        /// Its id.
        id: Position,
        /// Its place in the scenario.
        message: usize,
    },
    /// A relay got a lane.
    Gained(LaneLease),
    /// A relay that has lanes said that it lives.
    Renewed,
    /// A relay was told that the store went back in time.
    Noticed,
    /// A relay gave a lane back.
    GivenBack(LaneLease),
    /// A relay read messages.
    Claimed(Vec<(Position, Lane)>),
    /// A relay settled.
    Settled {
        /// What was set aside, but in lanes that were lost.
        aside: Vec<(Position, Aside)>,
        /// What was set aside before and is done.
        done: Vec<Position>,
        /// Lanes that were lost.
        late: Vec<Lane>,
        /// How far lanes are.
        lanes: Vec<Far>,
    },
    /// A relay sent a request to a sink. The place of this event names the request.
    Asked {
        /// The place of the sink.
        sink: usize,
        /// What it carries.
        ids: Vec<Position>,
    },
    /// A sink took in some of a request.
    Accepted {
        /// Which request.
        request: u64,
        /// What it took.
        ids: Vec<Position>,
        /// Their places in the scenario.
        messages: Vec<usize>,
    },
    /// A relay got an answer.
    Answered {
        /// To which request.
        request: u64,
        /// What it said.
        outcome: Outcome,
    },
    /// A call to the store failed.
    Failed {
        /// Which.
        operation: &'static str,
        /// Whether it had taken effect.
        effective: bool,
    },
    /// A relay started.
    Started,
    /// A relay is not polled any more …
    Froze,
    /// … and goes on.
    Thawed,
    /// A relay ended without a word.
    Crashed,
    /// A relay was asked to stop.
    ToldToStop,
    /// A relay ended by itself.
    Ended,
    /// Somebody made dead messages due again.
    Retried(Vec<Position>),
    /// Somebody removed dead messages.
    Dropped(Vec<Position>),
    /// The store went back to an earlier state. These messages were published since, and are gone.
    WentBack(Vec<usize>),
}

/// An event, when it was, and whose.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Since the world began.
    pub at: Duration,
    /// The life's place in the scenario; one more is the relay that comes last.
    pub life: usize,
    /// What happened.
    pub event: Event,
}

/// All events. Clones share the same list.
#[derive(Clone)]
pub struct History {
    entries: Arc<Mutex<Vec<Entry>>>,
    start: Instant,
}

impl History {
    pub fn begin() -> Self {
        Self { entries: Arc::default(), start: Instant::now() }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().expect("nothing panics while it holds the lock")
    }

    /// Virtual time since the world began.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// That time, for timers.
    pub fn instant(&self, at: Duration) -> Instant {
        self.start + at
    }

    /// Returns the place of the event, which names it.
    pub fn add(&self, life: usize, event: Event) -> u64 {
        let at = self.now();
        let mut entries = self.entries();
        entries.push(Entry { at, life, event });
        entries.len() as u64 - 1
    }

    /// What happened so far.
    pub fn read(&self) -> Vec<Entry> {
        self.entries().clone()
    }
}

/// What a history knows a message by, which is its place among all of them: its id in the memory store, which is a log,
/// and what its id ends with elsewhere.
pub fn position(id: &MessageId) -> Position {
    let number = |text: &str| text.rsplit('-').next().and_then(|it| it.parse::<i64>().ok());
    let number = id.as_number().or_else(|| number(&id.to_string()));
    Position(number.expect("every message has a number"))
}

/// What a settlement sets aside, for the record.
pub fn noted(aside: &SetAside) -> (Position, Aside) {
    (aside.position, aside.aside.clone())
}
