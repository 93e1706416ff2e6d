//! A store that fails when it is told to, for tests.

use async_trait::async_trait;
use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tidegate_core::{
    InspectOutbox, Memory, Message, MessageId, NewMessage, Outbox, Publish, Retain, StoreError,
    error::{Class, Kind},
    outbox::{
        AuditLine, Claim, ClaimRequest, DeadGroup, GiveBack, OutboxCapabilities, OutboxStatus,
        Outstanding, Sealed, Settled, Settlement, Share, Shared, SteerPage, Steered, Stored, Stuck,
        StuckQuery, TroubleNote,
    },
};
use tokio::time::sleep;

/// A memory store with flaws.
pub(super) struct Flawed {
    pub store: Memory,
    /// Lanes are shared out so many times; after that the call hangs.
    pub shares: AtomicU32,
    /// So many settlements take effect, but the answer is lost.
    pub lost_answers: AtomicU32,
    /// No settlement is taken any more.
    pub refuses: AtomicBool,
    /// How often something was settled.
    pub settled: AtomicU32,
}

impl Flawed {
    pub fn new(store: &Memory) -> Self {
        Self {
            store: store.clone(),
            shares: AtomicU32::new(u32::MAX),
            lost_answers: AtomicU32::new(0),
            refuses: AtomicBool::new(false),
            settled: AtomicU32::new(0),
        }
    }
}

/// Counts down. Returns whether nothing was left.
fn is_spent(left: &AtomicU32) -> bool {
    left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
}

#[async_trait]
impl Outbox for Flawed {
    fn outbox_capabilities(&self) -> OutboxCapabilities {
        self.store.outbox_capabilities()
    }

    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError> {
        if is_spent(&self.shares) {
            std::future::pending().await
        }
        self.store.share_lanes(request).await
    }

    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        self.store.claim_messages(request).await
    }

    async fn settle_messages(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        self.settled.fetch_add(1, Relaxed);
        if self.refuses.load(Relaxed) {
            return Err(StoreError::new(Kind::Refused, Class::Permanent, "settle", "no"));
        }
        let settled = self.store.settle_messages(settlement).await;
        if is_spent(&self.lost_answers) {
            return settled;
        }
        sleep(Duration::from_secs(1)).await;
        Err(StoreError::new(Kind::Deadline, Class::Transient, "settle", "the answer is lost"))
    }

    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError> {
        self.store.give_back_lanes(request).await
    }

    async fn note_sinks(&self, note: TroubleNote) -> Result<(), StoreError> {
        self.store.note_sinks(note).await
    }

    async fn published(&self) {
        self.store.published().await
    }
}

#[async_trait]
impl Publish for Flawed {
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        self.store.publish(messages).await
    }

    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError> {
        self.store.limit_outstanding(most).await
    }
}

#[async_trait]
impl InspectOutbox for Flawed {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        self.store.outbox().await
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        self.store.outstanding().await
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        self.store.dead_groups().await
    }

    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        self.store.stuck(query).await
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        self.store.message(id).await
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        self.store.steer_dead(page).await
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        InspectOutbox::audit(&self.store, limit).await
    }
}

#[async_trait]
impl Retain for Flawed {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        self.store.seal(age).await
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        self.store.sealed(sealed, after, limit).await
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        self.store.discard(sealed).await
    }
}
