//! What happened at the store, in order.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tidegate_core::{
    BatchId, Fence, Lease,
    inspect::BatchStatus,
    settle::{Part, Settled},
    source::Finalized,
};

/// Something that took effect at the store.
#[derive(Clone, Debug)]
pub enum Event {
    /// A worker got a lease.
    Claimed {
        /// Which.
        lease: Lease,
        /// Until when.
        expires: Duration,
    },
    /// A worker got more time.
    Renewed {
        /// The leases that it asked for.
        leases: Vec<Lease>,
        /// Those that were lost.
        lost: Vec<Fence>,
        /// Until when the others last.
        expires: Duration,
    },
    /// A worker settled, or was late.
    Settled {
        /// What it brought.
        parts: Vec<Part>,
        /// What became of it.
        answer: Settled,
        /// Until when the leases that go on last.
        expires: Duration,
    },
    /// A worker gave leases back.
    GivenBack(Vec<Lease>),
    /// A worker closed a batch.
    Finalized(Finalized),
    /// Somebody looked.
    Seen(Vec<BatchStatus>),
    /// A run ended a worker.
    Ended,
    /// A worker ended by itself after a stop was asked for.
    Stopped {
        /// When it was asked.
        asked: Duration,
        /// How long it may take.
        grace: Duration,
    },
}

/// An event, when it was, and which worker's.
#[derive(Clone, Debug)]
pub struct Entry {
    /// By the store's clock.
    pub at: Duration,
    /// The worker's place in the plan.
    pub worker: usize,
    /// What happened.
    pub event: Event,
    /// The store went back to before it.
    pub undone: bool,
}

/// All events. Clones share the same list.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Vec<Entry>>>);

impl History {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }

    pub(crate) fn add(&self, at: Duration, worker: usize, event: Event) {
        self.entries().push(Entry { at, worker, event, undone: false });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    /// The store holds only what it did before the event of this number.
    pub(crate) fn go_back(&self, length: usize) {
        self.entries()[length..].iter_mut().for_each(|entry| entry.undone = true);
    }

    /// What happened and was not undone: the past of the store as it is.
    pub fn surviving(&self) -> Vec<Entry> {
        self.entries().iter().filter(|entry| !entry.undone).cloned().collect()
    }

    /// What happened so far.
    pub fn read(&self) -> Vec<Entry> {
        self.entries().clone()
    }
}

/// The indexes that a lease covers.
pub fn indexes(lease: &Lease) -> impl Iterator<Item = (BatchId, u64)> + '_ {
    (0..lease.items.len()).map(|n| (lease.batch, lease.items.nth(n).index))
}
