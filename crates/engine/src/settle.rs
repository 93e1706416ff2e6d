//! Writing back what became of runs.

use crate::{
    act::Outcome,
    backoff::Backoff,
    totals::Totals,
    worker::{Shared, WorkerError},
};
use tidegate_core::{
    BatchId, Fence,
    settle::{Part, Settled, Settlement, Total},
};
use tokio::time::sleep;

/// Settles outcomes, one transaction at a time.
pub struct Settler {
    shared: Shared,
    totals: Totals,
}

impl Settler {
    pub fn new(shared: Shared) -> Self {
        Self { totals: Totals::new(&shared.options.worker), shared }
    }

    /// Settles whatever is finished until the hands are gone and all is settled.
    pub async fn settle_until_done(&mut self) -> Result<(), WorkerError> {
        loop {
            let outcomes = self.shared.desk.outcomes().await;
            if outcomes.is_empty() {
                return Ok(());
            }
            self.settle(outcomes).await?;
        }
    }

    /// Settles these outcomes, those excepted whose lease is lost. Tries until it is known that they
    /// are durable or that they are late.
    async fn settle(&mut self, mut outcomes: Vec<Outcome>) -> Result<(), WorkerError> {
        let mut backoff = Backoff::new(outcomes.len() as u64);
        let mut unknown = false;
        while !outcomes.is_empty() {
            let (totals, rows) = self.totals.with(&outcomes);
            let settlement = settlement(&outcomes, rows, self.shared.options.lease);
            let written = settlement.rows();
            let phase = self.shared.phases.settle_time.begin();
            self.shared.phases.settle_transactions.add(1);
            let answer = self.shared.source.settle(settlement).await;
            drop(phase);
            match answer {
                Ok(Settled::Applied) => {
                    self.totals.commit(totals);
                    self.count(&outcomes, written);
                    self.shared.desk.settled(&outcomes);
                    return Ok(());
                }
                // An earlier try may have been applied while this one waited behind it: ask again.
                Ok(Settled::Late(_)) if unknown => unknown = false,
                Ok(Settled::Late(fences)) => self.drop_late(&mut outcomes, &fences).await,
                // The leases may still be held: they decide whether these outcomes count.
                Ok(Settled::Forgotten(batches)) => self.begin_anew(&batches),
                Err(error) if error.is_passing() => {
                    unknown = true;
                    self.shared.phases.store_errors.add(1);
                    let pause = backoff.pause();
                    tracing::warn!("{error}; trying again in {pause:.0?}");
                    sleep(pause).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn begin_anew(&mut self, batches: &[BatchId]) {
        let names: Vec<String> = batches.iter().map(BatchId::to_string).collect();
        tracing::warn!(
            "the store went back in time: it does not know what was settled last of batch {}; \
             going on from what it knows",
            names.join(", ")
        );
        self.totals.forget(batches);
    }

    async fn drop_late(&self, outcomes: &mut Vec<Outcome>, late: &[Fence]) {
        self.shared.phases.late.add(late.len() as u64);
        tracing::warn!("{} leases were lost before their runs were settled", late.len());
        self.shared.lose(late).await;
        outcomes.retain(|outcome| !late.contains(&outcome.fence));
    }

    fn count(&self, outcomes: &[Outcome], rows: u64) {
        let phases = &self.shared.phases;
        phases.settles.add(1);
        phases.settled_rows.add(rows);
        phases.settled_runs.add(outcomes.iter().map(|outcome| outcome.progress.len()).sum());
        phases.failed_runs.add(outcomes.iter().map(|outcome| outcome.failed.len() as u64).sum());
    }
}

fn settlement(outcomes: &[Outcome], totals: Vec<Total>, lease: std::time::Duration) -> Settlement {
    let part = |outcome: &Outcome| Part {
        batch: outcome.batch,
        fence: outcome.fence,
        progress: outcome.progress.clone(),
        page: outcome.page.clone(),
        failed: outcome.failed.clone(),
    };
    Settlement { parts: outcomes.iter().map(part).collect(), totals, lease }
}
