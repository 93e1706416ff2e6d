//! A relay's view of the memory store.

use super::{
    history::{Event, Far, noted},
    late::Reading,
    wire::Wire,
};
use async_trait::async_trait;
use std::{collections::BTreeSet, time::Duration};
use tidegate_core::{
    InspectOutbox, Memory, Message, MessageId, NewMessage, Outbox, Position, Publish, Retain,
    StoreError,
    outbox::{
        AuditLine, Claim, ClaimRequest, DeadGroup, GiveBack, Lane, OutboxCapabilities,
        OutboxStatus, Outstanding, Progress, Sealed, Settled, Settlement, Share, Shared, SteerPage,
        Steered, Stored, Stuck, StuckQuery, TroubleNote,
    },
};

pub struct View {
    inner: Memory,
    /// How messages are read that come in by transactions.
    late: Option<Reading>,
    wire: Wire,
}

impl View {
    pub fn new(store: &Memory, late: Option<Reading>, wire: Wire) -> Self {
        Self { inner: store.clone(), late, wire }
    }

    fn note(&self, event: Event) {
        self.wire.note(event);
    }

    fn note_claimed(&self, claim: &Claim) {
        let read = claim.readings.iter().flat_map(|reading| &reading.messages);
        let messages: Vec<(Position, Lane)> =
            read.chain(&claim.due).map(|message| (message.position, message.lane)).collect();
        if !messages.is_empty() {
            self.note(Event::Claimed(messages));
        }
    }
}

#[async_trait]
impl Outbox for View {
    fn outbox_capabilities(&self) -> OutboxCapabilities {
        self.inner.outbox_capabilities()
    }

    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError> {
        let effect = async {
            let renews = !request.held.is_empty();
            let shared = self.inner.share_lanes(request).await?;
            if renews {
                self.note(Event::Renewed);
            }
            shared.gained.iter().for_each(|gained| self.note(Event::Gained(gained.lease)));
            Ok(shared)
        };
        self.wire.call("share", effect).await
    }

    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        let Some(late) = &self.late else {
            let effect = async {
                let claim = self.inner.claim_messages(request).await?;
                self.note_claimed(&claim);
                Ok(claim)
            };
            return self.wire.call("claim", effect).await;
        };
        let asked = late.ask();
        let rng = self.wire.fork();
        let effect = async {
            let answer = late.claim(request, asked, rng).await?;
            self.note_claimed(&answer.claim);
            Ok(answer)
        };
        self.wire.call("claim", effect).await.map(|answer| late.learn(answer))
    }

    async fn settle_messages(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        let effect = async {
            let lanes = settlement.lanes.iter().map(far).collect();
            let (aside, done) = (settlement.aside.clone(), settlement.done.clone());
            let settled = self.inner.settle_messages(settlement).await?;
            let late: BTreeSet<Lane> = settled.late.iter().copied().collect();
            let kept = |lane: &Lane| !late.contains(lane);
            self.note(Event::Settled {
                aside: aside.iter().filter(|it| kept(&it.lane)).map(noted).collect(),
                done: done.iter().filter(|(lane, _)| kept(lane)).map(|(_, id)| *id).collect(),
                late: settled.late.clone(),
                lanes,
            });
            Ok(settled)
        };
        self.wire.call("settle", effect).await
    }

    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError> {
        let effect = async {
            let lanes = request.lanes.clone();
            self.inner.give_back_lanes(request).await?;
            lanes.into_iter().for_each(|lease| self.note(Event::GivenBack(lease)));
            Ok(())
        };
        self.wire.call("give back", effect).await
    }

    async fn note_sinks(&self, note: TroubleNote) -> Result<(), StoreError> {
        self.inner.note_sinks(note).await
    }

    async fn published(&self) {
        self.inner.published().await;
    }
}

#[async_trait]
impl Publish for View {
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        self.inner.publish(messages).await
    }

    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError> {
        self.inner.limit_outstanding(most).await
    }
}

#[async_trait]
impl InspectOutbox for View {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        self.wire.call("status", self.inner.outbox()).await
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        self.inner.outstanding().await
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        self.inner.dead_groups().await
    }

    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        self.inner.stuck(query).await
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        self.inner.message(id).await
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        self.inner.steer_dead(page).await
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        self.inner.audit(limit).await
    }
}

#[async_trait]
impl Retain for View {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        self.wire.call("seal", self.inner.seal(age)).await
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        self.inner.sealed(sealed, after, limit).await
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        self.wire.call("discard", self.inner.discard(sealed)).await
    }
}

/// How far a lane is, for the record.
fn far(progress: &Progress) -> Far {
    let lags = progress.lags.iter().map(|lag| (lag.sink.clone(), lag.cursor));
    (progress.lane, progress.cursor, lags.collect())
}
