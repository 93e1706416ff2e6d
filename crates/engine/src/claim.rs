//! Leasing work: room → claim → group → act.

use crate::{
    act::Hands,
    backoff::{Backoff, mix},
    group::group,
    length::LengthTuner,
    options::Until,
    room::room,
    snapshots::Snapshots,
    worker::{Shared, WorkerError},
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tidegate_core::{
    BatchId, StoreError, Workloads,
    claim::{Claim, ClaimRequest},
    source::Finalized,
};
use tokio::time::sleep;

/// The first pause after a look for work in vain.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);

/// Claims as long as there is room.
pub struct Claimer {
    pub(crate) shared: Shared,
    hands: Arc<dyn Hands>,
    workloads: Vec<String>,
    snapshots: Snapshots,
    pub(crate) tuner: LengthTuner,
    backoff: Backoff,
    pause: Duration,
    /// Batches that cannot be closed: what is stored of them cannot be read, or not be added up.
    pub(crate) damaged: BTreeSet<BatchId>,
    /// The batches that this worker closed.
    pub finalized: Vec<Finalized>,
}

impl Claimer {
    pub fn new(shared: Shared, hands: Arc<dyn Hands>, workloads: Workloads) -> Self {
        let options = &shared.options;
        let noise = options.worker.0.bytes().fold(1, |n, byte| mix(n ^ u64::from(byte)));
        Self {
            workloads: workloads.names().map(str::to_owned).collect(),
            snapshots: Snapshots::new(workloads),
            tuner: LengthTuner::new(options.target, options.range_length, options.grain),
            backoff: Backoff::new(noise),
            pause: SHORTEST_PAUSE,
            damaged: BTreeSet::new(),
            finalized: Vec::new(),
            hands,
            shared,
        }
    }

    /// Keeps the desk full until a stop is asked for, or nothing is left to do.
    pub async fn claim_until_done(&mut self) -> Result<(), WorkerError> {
        while let Some(slots) = self.room().await {
            let mut claim = match self.claim(slots).await {
                Ok(claim) => claim,
                Err(error) => {
                    self.recover(error).await?;
                    continue;
                }
            };
            let found = !claim.leases.is_empty();
            let groups = group(&mut claim, &mut self.snapshots, &self.shared.phases);
            self.shared.desk.put(groups);
            let closed = self.finalize(&claim.settled).await?;
            let damaged = claim.settled.iter().filter(|batch| self.damaged.contains(batch)).count();
            if claim.open <= closed + damaged as u64 && self.shared.options.until == Until::Idle {
                break;
            }
            self.rest(found || closed > 0, claim.next_due).await;
        }
        Ok(())
    }

    /// Waits until leases may be claimed; `None` once a stop is asked for.
    async fn room(&mut self) -> Option<usize> {
        loop {
            if self.shared.stop.is_stopped() {
                return None;
            }
            let ahead = self.learn();
            let (unfinished, held) = self.shared.desk.load();
            let room = room(self.hands.count(), ahead, unfinished, held);
            if room > 0 {
                return Some(room);
            }
            tokio::select! {
                biased;
                () = self.shared.stop.stopped() => {}
                () = self.shared.desk.freed() => {}
            }
        }
    }

    async fn claim(&mut self, slots: usize) -> Result<Claim, StoreError> {
        let options = &self.shared.options;
        let request = ClaimRequest {
            worker: options.worker.clone(),
            slots,
            lengths: self.tuner.lengths(),
            workloads: self.workloads.clone(),
            only: options.only,
            lease: options.lease,
            known: self.snapshots.known(),
        };
        let phases = &self.shared.phases;
        let phase = phases.claim_time.begin();
        let claim = self.shared.source.claim(request).await?;
        drop(phase);
        phases.claims.add(1);
        phases.claimed_runs.add(claim.leases.iter().map(|lease| lease.items.len()).sum());
        self.backoff.reset();
        Ok(claim)
    }

    /// Waits out a failure that may pass.
    pub(crate) async fn recover(&mut self, error: StoreError) -> Result<(), WorkerError> {
        if !error.is_passing() {
            return Err(error.into());
        }
        self.shared.phases.store_errors.add(1);
        let pause = self.backoff.pause();
        tracing::warn!("{error}; trying again in {pause:.0?}");
        tokio::select! {
            biased;
            () = self.shared.stop.stopped() => {}
            () = sleep(pause) => {}
        }
        Ok(())
    }

    /// Pauses after a look in vain: longer each time, but not beyond what is due, and not at all when
    /// a hint comes or something here was settled.
    async fn rest(&mut self, found: bool, next_due: Option<Duration>) {
        if found {
            self.pause = SHORTEST_PAUSE;
            return;
        }
        let pause = self.pause.min(next_due.unwrap_or(Duration::MAX)).max(Duration::from_millis(1));
        self.pause = (self.pause * 2).min(self.shared.options.poll);
        tokio::select! {
            biased;
            () = self.shared.stop.stopped() => {}
            () = self.shared.desk.freed() => {}
            () = self.shared.source.wake() => {}
            () = sleep(pause) => {}
        }
    }

    /// Takes in how long runs took. Returns whether they are short enough to lease ahead.
    fn learn(&mut self) -> bool {
        for (batch, experience) in self.shared.desk.experience() {
            self.tuner.observe(batch, experience.runs, experience.busy);
        }
        self.tuner.runs_are_short(&self.shared.desk.batches())
    }
}
