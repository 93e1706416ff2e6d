//! Submits batches as long as the drill lasts, and looks how far they are.

use crate::{args::drill::FaultFlags, drill::stage::Stage};
use anyhow::{Context, Result};
use serde_json::json;
use std::time::Duration;
use tidegate::{
    BatchSpec, BatchState, OpenStore, RetryPolicy, Stop, Workloads,
    inspect::{BatchQuery, BatchStatus},
    limits::MAX_LISTED,
    submit, workloads,
};
use tidegate_drill::history::Moment;
use tokio::time::{Interval, interval, timeout};

pub const WORKLOAD: &str = "flaky";
/// Runs of a batch: some seconds of work.
pub const RUNS: u64 = 10_000;
/// How long a run takes.
const RUN_MS: f64 = 2.0;
/// Batches that run at the same time: when the end of one waits for a lease, another goes on.
const AT_ONCE: u64 = 2;
const LOOK: Duration = Duration::from_millis(100);
/// Longer means that the server is gone.
const DEADLINE: Duration = Duration::from_secs(5);
/// A run that is lost with its worker may count as an attempt; none is to be given up.
const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: 1_000,
    base: Duration::from_millis(100),
    cap: Duration::from_secs(1),
};

/// A batch that was submitted. Its seed is known to be its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub seed: u64,
    /// When the store acknowledged it; `None` if no answer came.
    pub acknowledged: Option<Moment>,
}

/// How far all batches were at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub at: Moment,
    pub running: u64,
    pub completed: u64,
}

/// Batches at work.
pub struct Watch<'a> {
    stage: &'a Stage,
    workloads: Workloads,
    fail_share: f64,
    next_seed: u64,
    ticks: Interval,
    pub submitted: Vec<Submitted>,
    pub looks: Vec<Look>,
}

impl<'a> Watch<'a> {
    pub fn new(stage: &'a Stage, flags: &FaultFlags) -> Self {
        Self {
            stage,
            workloads: workloads::builtin(),
            fail_share: flags.fail_share,
            next_seed: flags.seed.wrapping_mul(1 << 20),
            ticks: interval(LOOK),
            submitted: Vec::new(),
            looks: Vec::new(),
        }
    }

    /// Waits until it is time to look again.
    pub async fn pause(&mut self) {
        self.ticks.tick().await;
    }

    /// Submits a batch whenever too few are running.
    pub async fn submit(&mut self, stop: &Stop) -> Result<()> {
        while !stop.is_stopped() {
            self.pause().await;
            if let Some(look) = self.look().await
                && look.running < AT_ONCE
            {
                self.submit_one().await?;
            }
        }
        Ok(())
    }

    /// Looks how far batches are; `None` if the server does not say.
    pub async fn look(&mut self) -> Option<Look> {
        let listed = all_batches(&self.stage.store, MAX_LISTED);
        let batches = timeout(DEADLINE, listed).await.ok()?.ok()?;
        let is_running = |it: &&BatchStatus| it.state == BatchState::Running;
        let look = Look {
            at: self.stage.now(),
            running: batches.iter().filter(is_running).count() as u64,
            completed: batches.iter().map(|it| it.progress.completed).sum(),
        };
        // Only changes are kept.
        let is_same = |last: &Look| Look { at: look.at, ..*last } == look;
        match self
            .looks
            .len()
            .checked_sub(2)
            .map(|before| (self.looks[before], self.looks[before + 1]))
        {
            Some((before, last)) if is_same(&before) && is_same(&last) => {
                self.looks.pop();
                self.looks.push(look);
            }
            _ => self.looks.push(look),
        }
        Some(look)
    }

    async fn submit_one(&mut self) -> Result<()> {
        let seed = self.next_seed;
        self.next_seed += 1;
        let spec = BatchSpec {
            seed,
            retry: RETRY,
            snapshot: json!({ "fail": self.fail_share, "ms": RUN_MS }),
            ..BatchSpec::new(WORKLOAD, RUNS)
        };
        spec.clone().check(&self.workloads).context("the drill's own batch is refused")?;
        let submitted = timeout(DEADLINE, submit(&*self.stage.store, &self.workloads, spec)).await;
        let acknowledged = matches!(submitted, Ok(Ok(_))).then(|| self.stage.now());
        self.submitted.push(Submitted { seed, acknowledged });
        Ok(())
    }
}

/// Every batch of a store, newest first, read in pages: a long drill submits more than one listing returns.
pub async fn all_batches(store: &OpenStore, page: usize) -> Result<Vec<BatchStatus>> {
    let (mut query, mut all) = (BatchQuery::newest(page), Vec::new());
    loop {
        let mut listed = store.batches(query.clone()).await?;
        let is_last = listed.len() < page;
        query.before = listed.last().map(|last| last.batch.id);
        all.append(&mut listed);
        if is_last {
            return Ok(all);
        }
    }
}
