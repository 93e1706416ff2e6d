//! A worker's view of the memory store: slow, failing, and recorded.

use crate::{
    Faults,
    history::{Event, History},
};
use async_trait::async_trait;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::{
    collections::BTreeSet,
    future::Future,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tidegate_core::{
    BatchId, Class, Fence, Inspect, Kind, Lease, Memory, Source, StoreError,
    claim::{Claim, ClaimRequest},
    inspect::BatchQuery,
    settle::{AccumulatorId, Settled, Settlement},
    source::{Capabilities, Finalized, Renewal},
};
use tokio::time::sleep;

pub struct FaultyStore {
    pub inner: Memory,
    pub clock: fn() -> Duration,
    pub faults: Faults,
    pub worker: usize,
    pub history: History,
    rng: Mutex<ChaCha8Rng>,
    applied: Applied,
}

/// Settlements that the store knows of, for all workers. Clones share them.
#[derive(Clone, Default)]
pub struct Applied(Arc<Mutex<BTreeSet<(BatchId, AccumulatorId, i64)>>>);

impl Applied {
    fn set(&self) -> MutexGuard<'_, BTreeSet<(BatchId, AccumulatorId, i64)>> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }

    /// What they are now, apart from what they become.
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.set().clone())))
    }

    /// They are again what they were.
    pub fn go_back(&self, earlier: &Self) {
        *self.set() = earlier.set().clone();
    }
}

impl FaultyStore {
    pub fn new(
        inner: Memory,
        clock: fn() -> Duration,
        faults: Faults,
        worker: usize,
        history: History,
        applied: Applied,
        seed: u64,
    ) -> Self {
        let rng = Mutex::new(ChaCha8Rng::seed_from_u64(seed ^ (worker as u64) << 32));
        Self { inner, clock, faults, worker, history, rng, applied }
    }

    fn note(&self, event: Event) {
        self.history.add((self.clock)(), self.worker, event);
    }

    fn is_new(&self, sequence: Option<(BatchId, AccumulatorId, i64)>) -> bool {
        sequence.is_some_and(|sequence| self.applied.set().insert(sequence))
    }

    fn roll<T>(&self, decide: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        decide(&mut self.rng.lock().expect("nothing panics while it holds the lock"))
    }

    /// One call: the way there, the effect, the way back; each way may fail.
    async fn call<T>(
        &self,
        operation: &'static str,
        effect: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.leg(operation).await?;
        let answer = effect.await;
        self.leg(operation).await?;
        answer
    }

    async fn leg(&self, operation: &'static str) -> Result<(), StoreError> {
        let (pause, fails) = self.roll(|rng| (self.faults.leg(rng), self.faults.strikes(rng)));
        sleep(pause).await;
        if fails {
            let message = "the connection broke";
            return Err(StoreError::new(Kind::Unreachable, Class::Unavailable, operation, message));
        }
        Ok(())
    }

    async fn look(&self) {
        let query = BatchQuery::newest(100);
        let seen = self.inner.batches(query).await.expect("reading memory does not fail");
        self.note(Event::Seen(seen));
    }
}

#[async_trait]
impl Source for FaultyStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        let lease_time = request.lease;
        let effect = async {
            let claim = self.inner.claim(request).await?;
            for lease in &claim.leases {
                let expires = (self.clock)() + lease_time;
                self.note(Event::Claimed { lease: lease.clone(), expires });
            }
            self.look().await;
            Ok(claim)
        };
        self.call("claim", effect).await
    }

    async fn renew(&self, request: Renewal) -> Result<Vec<Fence>, StoreError> {
        let effect = async {
            let (leases, lease_time) = (request.leases.clone(), request.lease);
            let lost = self.inner.renew(request).await?;
            let expires = (self.clock)() + lease_time;
            self.note(Event::Renewed { leases, lost: lost.clone(), expires });
            Ok(lost)
        };
        self.call("renew", effect).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        let effect = async {
            let (parts, lease_time) = (settlement.parts.clone(), settlement.lease);
            let sequence = settlement.totals.first().map(|t| (t.batch, t.accumulator, t.sequence));
            let answer = self.inner.settle(settlement).await?;
            // A settlement sent again is answered as applied, but changes nothing.
            if answer != Settled::Applied || self.is_new(sequence) {
                let expires = (self.clock)() + lease_time;
                self.note(Event::Settled { parts, answer: answer.clone(), expires });
            }
            self.look().await;
            Ok(answer)
        };
        self.call("settle", effect).await
    }

    async fn give_back(&self, leases: Vec<Lease>) -> Result<(), StoreError> {
        let effect = async {
            self.inner.give_back(leases.clone()).await?;
            self.note(Event::GivenBack(leases));
            Ok(())
        };
        self.call("give back", effect).await
    }

    async fn finalize(&self, batches: Vec<BatchId>) -> Result<Vec<Finalized>, StoreError> {
        let effect = async {
            let finalized = self.inner.finalize(batches).await?;
            finalized.iter().for_each(|closed| self.note(Event::Finalized(*closed)));
            self.look().await;
            Ok(finalized)
        };
        self.call("finalize", effect).await
    }

    async fn wake(&self) {
        self.inner.wake().await
    }
}
