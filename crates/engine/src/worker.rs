//! The loop.

use crate::{
    act::{Desk, Hands, HungRuns, Threads},
    claim::Claimer,
    options::WorkerOptions,
    phases::{PhaseReport, Phases},
    settle::Settler,
    stop::Stop,
};
use std::{fmt, sync::Arc, time::Duration};
use tidegate_core::{Source, StoreError, Workloads, source::Finalized};
use tokio::time::{Instant, sleep};

/// Works on the batches of a store until it is told to stop, or nothing is left to do.
pub struct Worker {
    workloads: Workloads,
    hands: Arc<dyn Hands>,
    shared: Shared,
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
    /// Too many runs hang.
    Hung(HungRuns),
}

impl Worker {
    /// A worker with threads.
    pub fn new(source: Arc<dyn Source>, workloads: Workloads, options: WorkerOptions) -> Self {
        let phases = Arc::new(Phases::default());
        let hands = Arc::new(Threads::new(options.threads, phases.clone()));
        Self::with_hands(source, workloads, options, hands, phases)
    }

    /// A worker that acts in another way.
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
        Self { workloads, hands, shared }
    }

    /// Works until `stop` is asked for, or until nothing is left if the options say so. Afterwards
    /// everything that was acted on is settled, and everything else is given back.
    pub async fn run(mut self, stop: Stop) -> Result<Report, WorkerError> {
        self.shared.stop = stop;
        let mut claimer = Claimer::new(self.shared.clone(), self.workloads.clone());
        let mut settler = Settler::new(self.shared.clone());

        let work = async {
            tokio::try_join!(self.claim_and_act(&mut claimer), settler.settle_until_done())
        };
        tokio::select! {
            biased;
            ended = work => ended?,
            never = self.shared.renew_leases() => match never {},
            never = self.report_phases() => match never {},
        };
        self.shared.give_back_rest().await;
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
                ended = self.hands.work(shared.desk.clone()) => ended.map_err(WorkerError::Hung),
                () = self.grace_is_over() => Ok(()),
            }
        };
        let ended = tokio::try_join!(claim, act);
        shared.desk.close();
        shared.desk.finish();
        ended.map(|_| ())
    }

    async fn grace_is_over(&self) {
        self.shared.stop.stopped().await;
        sleep(self.shared.options.grace).await;
    }

    async fn report_phases(&self) -> std::convert::Infallible {
        let mut earlier = PhaseReport::default();
        loop {
            sleep(self.shared.options.report_every).await;
            let now = self.phases();
            tracing::info!(worker = %self.shared.options.worker.0, "{}", now.since(&earlier));
            earlier = now;
        }
    }

    fn phases(&self) -> PhaseReport {
        self.shared.phases.report(self.shared.started.elapsed(), self.hands.count())
    }
}

impl Shared {
    /// Gives back what was leased and never acted on. Best effort: what stays leased expires.
    async fn give_back_rest(&self) {
        let leases = self.desk.leases();
        if leases.is_empty() {
            return;
        }
        let patience = Duration::from_secs(5);
        let given = tokio::time::timeout(patience, self.source.give_back(leases)).await;
        if let Ok(Err(error)) = given {
            tracing::warn!("leases were not given back and will expire: {error}");
        }
    }
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerError::Store(error) => error.fmt(f),
            WorkerError::Hung(HungRuns(count)) => write!(
                f,
                "{count} runs hang beyond their time-out and cannot be ended: restart the worker"
            ),
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
