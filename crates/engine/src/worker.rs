//! The loop.

use crate::{
    act::{Desk, Hands, HandsError, Threads},
    claim::Claimer,
    options::{UnfitLease, WorkerOptions},
    phases::{PhaseReport, Phases},
    settle::Settler,
    stop::Stop,
};
use std::{convert::Infallible, fmt, sync::Arc, time::Duration};
use tidegate_core::{Source, StoreError, Workloads, source::Finalized};
use tokio::time::{Instant, sleep};

/// How long the last calls to a store may take after a stop, beyond the grace.
const STORE_GRACE: Duration = Duration::from_secs(2);

/// Works on the batches of a store until it is told to stop, or nothing is left to do.
pub struct Worker {
    workloads: Workloads,
    hands: Arc<dyn Hands>,
    shared: Shared,
    unfit_lease: Option<UnfitLease>,
}

/// What the steps of the loop share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub source: Arc<dyn Source>,
    pub options: Arc<WorkerOptions>,
    pub desk: Arc<Desk>,
    pub phases: Arc<Phases>,
    pub stop: Stop,
    pub started: Instant,
}

/// What a worker did.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where its time went.
    pub phases: PhaseReport,
    /// The batches that it closed.
    pub finalized: Vec<Finalized>,
}

/// Why a worker ended before its time.
#[derive(Debug)]
pub enum WorkerError {
    /// The store failed in a way that waiting does not mend.
    Store(StoreError),
    /// The hands cannot go on.
    Hands(HandsError),
    /// Its lease is too short or too long. Nothing was done.
    Lease(UnfitLease),
}

impl Worker {
    /// A worker with threads.
    pub fn new(source: Arc<dyn Source>, workloads: Workloads, options: WorkerOptions) -> Self {
        let phases = Arc::new(Phases::default());
        let hands = Arc::new(Threads::new(options.threads, phases.clone()));
        let unfit_lease = UnfitLease::check(options.lease).err();
        Self { unfit_lease, ..Self::with_hands(source, workloads, options, hands, phases) }
    }

    /// A worker that acts in another way. Its lease may be of any length: the simulator has a clock of its
    /// own.
    pub fn with_hands(
        source: Arc<dyn Source>,
        workloads: Workloads,
        options: WorkerOptions,
        hands: Arc<dyn Hands>,
        phases: Arc<Phases>,
    ) -> Self {
        let desk = Desk::new(hands.count(), options.flush_runs, options.flush_after);
        let shared = Shared {
            source,
            desk: Arc::new(desk),
            phases,
            stop: Stop::new(),
            started: Instant::now(),
            options: Arc::new(options),
        };
        Self { workloads, hands, shared, unfit_lease: None }
    }

    /// Works until `stop` is asked for, or until nothing is left if the options say so. Afterwards
    /// everything that was acted on is settled, and everything else is given back.
    pub async fn run(mut self, stop: Stop) -> Result<Report, WorkerError> {
        if let Some(unfit) = self.unfit_lease {
            return Err(WorkerError::Lease(unfit));
        }
        self.shared.stop = stop;
        let _closes = ClosesDesk(self.shared.desk.clone());
        let mut claimer =
            Claimer::new(self.shared.clone(), self.hands.clone(), self.workloads.clone());
        let mut settler = Settler::new(self.shared.clone());

        let settle = async {
            let ended = settler.settle_until_done().await;
            if ended.is_err() {
                self.shared.stop.stop(); // nothing that is acted on now can be settled
            }
            ended
        };
        let work = async {
            let (acted, settled) = tokio::join!(self.claim_and_act(&mut claimer), settle);
            settled.and(acted)
        };
        let ended = tokio::select! {
            biased;
            ended = work => ended,
            () = self.time_is_over(STORE_GRACE) => {
                tracing::warn!("the store does not answer: what is not settled will be repeated");
                Ok(())
            }
            never = self.shared.renew_leases() => match never {},
            never = self.report_phases() => match never {},
        };
        self.shared.give_back_rest().await;
        ended?;
        Ok(Report { phases: self.phases(), finalized: claimer.finalized })
    }

    async fn claim_and_act(&self, claimer: &mut Claimer) -> Result<(), WorkerError> {
        let shared = &self.shared;
        let claim = async {
            let ended = claimer.claim_until_done().await;
            shared.desk.close();
            ended
        };
        let act = async {
            tokio::select! {
                biased;
                ended = self.hands.work(shared.desk.clone()) => ended.map_err(WorkerError::Hands),
                () = self.time_is_over(Duration::ZERO) => Ok(()),
            }
        };
        // The claim that is under way when a stop is asked for may take long: nothing waits for it.
        let close = async {
            shared.stop.stopped().await;
            shared.desk.close();
            std::future::pending::<Infallible>().await
        };
        let ended = tokio::select! {
            ended = async { tokio::try_join!(claim, act) } => ended.map(|_| ()),
            never = close => match never {},
        };
        shared.desk.close();
        shared.desk.finish();
        ended
    }

    /// Returns when a stop was asked for and the grace, and some more, has passed.
    async fn time_is_over(&self, more: Duration) {
        self.shared.stop.stopped().await;
        sleep(self.shared.options.grace + more).await;
    }

    async fn report_phases(&self) -> Infallible {
        let mut earlier = PhaseReport::default();
        loop {
            sleep(self.shared.options.report_every).await;
            let now = self.phases();
            let worker = &self.shared.options.worker.0;
            tracing::info!(target: "tidegate::phases", %worker, "{}", now.since(&earlier));
            earlier = now;
        }
    }

    fn phases(&self) -> PhaseReport {
        self.shared.phases.report(self.shared.started.elapsed(), self.hands.count())
    }
}

/// Lets no run begin once the worker is gone, however it ends.
struct ClosesDesk(Arc<Desk>);

impl Drop for ClosesDesk {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Shared {
    /// Gives back what was leased and never acted on. Best effort: what stays leased expires.
    async fn give_back_rest(&self) {
        let leases: Vec<_> = self.desk.leases().into_iter().map(|held| held.lease).collect();
        if leases.is_empty() {
            return;
        }
        let given = tokio::time::timeout(STORE_GRACE, self.source.give_back(leases)).await;
        if let Ok(Err(error)) = given {
            tracing::warn!("leases were not given back and will expire: {error}");
        }
    }
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerError::Store(error) => error.fmt(f),
            WorkerError::Hands(error) => error.fmt(f),
            WorkerError::Lease(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WorkerError {}

impl From<StoreError> for WorkerError {
    fn from(error: StoreError) -> Self {
        WorkerError::Store(error)
    }
}

#[cfg(test)]
mod tests;
