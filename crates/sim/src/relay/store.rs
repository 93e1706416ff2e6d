//! A relay's view of the memory store: slow, failing, and recorded.

use super::{
    dice::{dice, ms},
    hazards::Hazard,
    history::{Event, Far, History, noted},
    ice::Ice,
    late::Reading,
    life::Stage,
    scenario::LifePlan,
};
use crate::Faults;
use async_trait::async_trait;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::{collections::BTreeSet, future::Future, sync::Mutex, time::Duration};
use tidegate_core::{
    Class, InspectOutbox, Kind, Memory, Message, MessageId, NewMessage, Outbox, Position, Publish,
    Retain, StoreError,
    outbox::{
        AuditLine, Claim, ClaimRequest, DeadGroup, GiveBack, Lane, OutboxCapabilities,
        OutboxStatus, Outstanding, Progress, Sealed, Settled, Settlement, Share, Shared, SteerPage,
        Steered, Stored, Stuck, StuckQuery, TroubleNote,
    },
};
use tokio::time::sleep;

pub struct View {
    inner: Memory,
    /// How messages are read that come in by transactions.
    late: Option<Reading>,
    faults: Faults,
    outage: Option<(Duration, Duration)>,
    life: usize,
    ice: Ice,
    history: History,
    rng: Mutex<ChaCha8Rng>,
}

impl View {
    pub fn new(stage: &Stage, life: usize, plan: &LifePlan, ice: &Ice) -> Self {
        Self {
            inner: stage.store.clone(),
            late: stage.scenario.hazards.has(Hazard::LateCommit).then(|| Reading::new(stage)),
            faults: plan.faults,
            outage: plan.outage,
            life,
            ice: ice.clone(),
            history: stage.history.clone(),
            rng: Mutex::new(dice(stage.scenario.seed, [0xca11, life as u64, 0])),
        }
    }

    fn note(&self, event: Event) {
        self.history.add(self.life, event);
    }

    fn note_claimed(&self, claim: &Claim) {
        let read = claim.readings.iter().flat_map(|reading| &reading.messages);
        let messages: Vec<(Position, Lane)> =
            read.chain(&claim.due).map(|message| (message.position, message.lane)).collect();
        if !messages.is_empty() {
            self.note(Event::Claimed(messages));
        }
    }

    /// One call: the way there, the effect, the way back; each way may fail.
    async fn call<T>(
        &self,
        operation: &'static str,
        effect: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.ice.thawed().await;
        self.leg(operation, false).await?;
        let answer = effect.await;
        if answer.as_ref().is_err_and(|error| error.kind() == Kind::WentBack) {
            self.note(Event::Noticed);
        }
        self.leg(operation, true).await?;
        answer
    }

    async fn leg(&self, operation: &'static str, effective: bool) -> Result<(), StoreError> {
        let (pause, fails) = {
            let mut rng = self.rng.lock().expect("nothing panics while it holds the lock");
            (self.faults.leg(&mut rng), self.faults.strikes(&mut rng))
        };
        sleep(pause).await;
        let now = self.history.now();
        let out = self.outage.is_some_and(|(from, until)| from <= now && now < until);
        if out {
            sleep(ms(100)).await;
        }
        if effective {
            self.ice.thawed().await;
        }
        if fails || out {
            self.note(Event::Failed { operation, effective });
            let message = "the connection broke";
            return Err(StoreError::new(Kind::Unreachable, Class::Unavailable, operation, message));
        }
        Ok(())
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
        self.call("share", effect).await
    }

    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        let Some(late) = &self.late else {
            let effect = async {
                let claim = self.inner.claim_messages(request).await?;
                self.note_claimed(&claim);
                Ok(claim)
            };
            return self.call("claim", effect).await;
        };
        let asked = late.ask();
        let rng = self.rng.lock().expect("nothing panics while it holds the lock").fork();
        let effect = async {
            let answer = late.claim(request, asked, rng).await?;
            self.note_claimed(&answer.claim);
            Ok(answer)
        };
        self.call("claim", effect).await.map(|answer| late.learn(answer))
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
        self.call("settle", effect).await
    }

    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError> {
        let effect = async {
            let lanes = request.lanes.clone();
            self.inner.give_back_lanes(request).await?;
            lanes.into_iter().for_each(|lease| self.note(Event::GivenBack(lease)));
            Ok(())
        };
        self.call("give back", effect).await
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
        self.call("status", self.inner.outbox()).await
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
        self.call("seal", self.inner.seal(age)).await
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
        self.call("discard", self.inner.discard(sealed)).await
    }
}

/// How far a lane is, for the record.
fn far(progress: &Progress) -> Far {
    let lags = progress.lags.iter().map(|lag| (lag.sink.clone(), lag.cursor));
    (progress.lane, progress.cursor, lags.collect())
}
