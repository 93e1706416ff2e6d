//! The reference model: what every store must do, in the plainest way, without durability.
//!
//! Other stores are compared with it operation by operation. It is also the store of the simulator
//! and of `--store memory:`.

mod claim;
mod finalize;
mod inspect;
mod outbox;
mod pace;
mod renew;
mod settle;
mod submit;
mod suspects;

use crate::{
    Batch, BatchId, BatchState, ExceptionState, Fence, Page, Snapshot, SnapshotHash, StoreError,
    claim::{Claim, ClaimRequest},
    lease::Lease,
    migrate::{Migrate, Schema},
    pace::PaceNote,
    settle::{AccumulatorId, Settled, Settlement},
    source::{Capabilities, Finalized, Renewal, Source},
    stamp::stamp,
};
use async_trait::async_trait;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Time since 1970, or since any other point that does not move.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A store in memory. Clones share the same content.
#[derive(Clone)]
pub struct Memory {
    clock: Clock,
    content: Arc<Mutex<Content>>,
    /// Claims so far: the noise of fences. It does not go back with the content.
    claims: Arc<AtomicU64>,
}

#[derive(Clone, Default)]
struct Content {
    last_fence: i64,
    last_batch: i64,
    snapshots: BTreeMap<SnapshotHash, Snapshot>,
    batches: BTreeMap<BatchId, Row>,
    /// With their times, oldest first.
    paces: Vec<(Duration, PaceNote)>,
    outbox: outbox::OutboxContent,
}

/// A batch and all that belongs to it.
#[derive(Clone)]
struct Row {
    batch: Batch,
    state: BatchState,
    /// The first index never leased.
    cursor: u64,
    created: Duration,
    finished: Option<Duration>,
    /// By the end of the range, which never changes.
    leases: BTreeMap<u64, RangeLease>,
    exceptions: BTreeMap<u64, ExceptionRow>,
    pages: BTreeMap<u64, Page>,
    parts: BTreeMap<AccumulatorId, (i64, Vec<u8>)>,
}

#[derive(Clone)]
struct RangeLease {
    lo: u64,
    fence: Fence,
    expires: Duration,
    worker: String,
    tries: Tries,
    /// A part of a range that was lost twice.
    suspect: bool,
}

/// How work was leased before.
#[derive(Clone, Copy, Default)]
struct Tries {
    /// Leases that ended neither by settling nor by giving back, the present one included.
    leases: u32,
    /// The fence of the last one that was lost.
    lost: Option<Fence>,
}

#[derive(Clone)]
struct ExceptionRow {
    attempts: u32,
    state: ExceptionState,
    reason: String,
    /// When it may be claimed: its due time, or the expiry of its lease.
    due: Duration,
    /// Who holds it now …
    fence: Option<Fence>,
    /// … and their name.
    worker: String,
    tries: Tries,
}

impl ExceptionRow {
    fn is_due(&self, now: Duration) -> bool {
        self.state == ExceptionState::Retry && self.due <= now
    }

    fn is_held(&self, fence: Fence) -> bool {
        self.state == ExceptionState::Retry && self.fence == Some(fence)
    }
}

impl Row {
    fn is_settled(&self) -> bool {
        self.state == BatchState::Running
            && self.cursor == self.batch.runs
            && self.leases.is_empty()
            && self.count(ExceptionState::Retry) == 0
    }

    fn count(&self, state: ExceptionState) -> u64 {
        self.exceptions.values().filter(|exception| exception.state == state).count() as u64
    }
}

/// What a store held at one moment.
#[derive(Clone)]
pub struct Saved(Content);

impl Content {
    /// Goes back to what was stored, in another epoch. No fence is given away twice.
    fn restore(&mut self, saved: &Saved) {
        let (epoch, last_fence) = (self.outbox.epoch() + 1, self.last_fence);
        *self = saved.0.clone();
        self.last_fence = last_fence;
        self.outbox.set_epoch(epoch);
    }

    fn next_fence(&mut self, noise: u64) -> Fence {
        self.last_fence += 1;
        Fence(stamp(self.last_fence, noise))
    }
}

impl Memory {
    /// An empty store whose time is what `clock` says.
    pub fn new(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), content: Arc::default(), claims: Arc::default() }
    }

    /// All that is stored now.
    pub fn save(&self) -> Saved {
        Saved(self.content().clone())
    }

    /// Goes back to what was stored, as a server does after a failover to a standby that was behind. Everybody who
    /// knows more than that has to notice.
    pub fn go_back(&self, saved: &Saved) {
        let mut content = self.content();
        content.restore(saved);
        content.begin_epoch();
    }

    /// The same, but the fences of lanes are as they were stored: nothing but the epoch tells.
    pub fn go_back_unfenced(&self, saved: &Saved) {
        self.content().restore(saved);
    }

    fn now(&self) -> Duration {
        (self.clock)()
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no method panics while it holds the lock")
    }
}

#[async_trait]
impl Source for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "memory", durable: false, shared: false }
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        let noise = self.claims.fetch_add(1, Relaxed);
        Ok(self.content().claim(request, noise, self.now()))
    }

    async fn renew(&self, request: Renewal) -> Result<Vec<Fence>, StoreError> {
        Ok(self.content().renew(request, self.now()))
    }

    async fn settle(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        Ok(self.content().settle(settlement, self.now()))
    }

    async fn give_back(&self, leases: Vec<Lease>) -> Result<(), StoreError> {
        self.content().give_back(leases, self.now());
        Ok(())
    }

    async fn finalize(&self, batches: Vec<BatchId>) -> Result<Vec<Finalized>, StoreError> {
        self.content().finalize(batches, self.now())
    }

    async fn wake(&self) {
        std::future::pending().await
    }
}

#[async_trait]
impl Migrate for Memory {
    async fn migrate(&self) -> Result<Vec<&'static str>, StoreError> {
        Ok(Vec::new())
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        Ok(Schema::Current)
    }
}
