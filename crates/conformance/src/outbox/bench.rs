//! The bench on which cases of outboxes work: an outbox, with a handle of its own for every relay.

use crate::fixture::Handles;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};
use tidegate_core::{
    Fence, MessageId, OutboxStore,
    outbox::{
        Lane, LaneLease, Lines, Listing, OnDead, OutboxCapabilities, Publishing, Reads, Stuck,
        StuckState, WhoseClock,
    },
};

/// An outbox to work on. Clones share it.
#[derive(Clone)]
pub(crate) struct Bench {
    /// For people and publishers.
    pub(crate) store: Arc<dyn OutboxStore>,
    handles: Handles,
    /// In this order.
    published: Arc<Mutex<Vec<MessageId>>>,
    /// By lease, the handle of the relay that has it.
    leases: Arc<Mutex<Leases>>,
}

type Leases = HashMap<(Lane, Fence), Arc<dyn OutboxStore>>;

impl Bench {
    pub(crate) fn new(handles: Handles) -> Self {
        Self { store: handles.open(), handles, published: Arc::default(), leases: Arc::default() }
    }

    pub(crate) fn capabilities(&self) -> OutboxCapabilities {
        self.store.outbox_capabilities()
    }

    pub(crate) fn publishing(&self) -> Option<Publishing> {
        self.capabilities().publishing
    }

    pub(crate) fn is_log(&self) -> bool {
        self.capabilities().reads == Reads::Log
    }

    /// Whether the store itself knows which message of a key is next.
    pub(crate) fn has_lines(&self) -> bool {
        self.capabilities().lines == Lines::InStore
    }

    pub(crate) fn lists_by_id(&self) -> bool {
        self.capabilities().listing == Listing::ById
    }

    /// How often a relay shares until it has what another one had whose lease is over: without a clock in the store, it
    /// must have seen the other one stand still.
    pub(crate) fn looks(&self) -> usize {
        match self.capabilities().clock {
            WhoseClock::Store => 1,
            WhoseClock::Relay => 2,
        }
    }

    /// Messages were published through this bench.
    pub(crate) fn note_published(&self, ids: &[MessageId]) {
        self.published
            .lock()
            .expect("nothing panics while it holds the lock")
            .extend_from_slice(ids);
    }

    /// The place of a message among all that were published: ids need not say.
    pub(crate) fn place_of(&self, id: &MessageId) -> Option<usize> {
        let published = self.published.lock().expect("nothing panics while it holds the lock");
        published.iter().position(|known| known == id)
    }

    /// A handle for one relay: a store that is read by state remembers there what the relay has read.
    pub(crate) fn handle(&self) -> Arc<dyn OutboxStore> {
        self.handles.open()
    }

    /// Remembers who has a lane.
    pub(crate) fn leased(&self, lease: LaneLease, handle: &Arc<dyn OutboxStore>) {
        let mut leases = self.leases.lock().expect("nothing panics while it holds the lock");
        leases.insert((lease.lane, lease.fence), handle.clone());
    }

    /// The handle of the relay that had one of these leases.
    pub(crate) fn handle_of(&self, leases: &[(Lane, Fence)]) -> Arc<dyn OutboxStore> {
        let known = self.leases.lock().expect("nothing panics while it holds the lock");
        let found = leases.iter().find_map(|lease| known.get(lease));
        found.unwrap_or(&self.store).clone()
    }

    /// Another bench with the same content; `None` if it is in this process only.
    pub(crate) async fn reopen(&self) -> Option<Self> {
        let handles = self.handles.reopen().await?;
        Some(Self { published: self.published.clone(), ..Self::new(handles) })
    }
}

/// Of every key the first that waits is due, unless one before it holds the key, and no other is: what a relay makes of
/// a listing that does not show it.
pub(super) fn line_up(stuck: &mut [Stuck]) {
    let mut lines = BTreeSet::new();
    for one in stuck {
        let holds = match one.state {
            StuckState::Retry | StuckState::Behind => true,
            StuckState::Dead => one.then != OnDead::Skip,
            StuckState::Later | StuckState::Unrouted => false,
        };
        let key = one.key.clone().filter(|_| holds);
        let is_first = key.is_none_or(|key| lines.insert((one.sink.clone(), key)));
        match one.state {
            StuckState::Behind if is_first => {
                (one.state, one.due_in) = (StuckState::Retry, Some(Duration::ZERO));
            }
            StuckState::Retry if !is_first => (one.state, one.due_in) = (StuckState::Behind, None),
            _ => {}
        }
    }
}
