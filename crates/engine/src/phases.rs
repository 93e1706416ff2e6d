//! Where a worker's time goes, and what limits it.

use serde::Serialize;
use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::Instant;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A time that adds up from stretches. One that has not ended counts as far as it got.
#[derive(Clone, Debug, Default)]
pub struct Timer(Arc<Mutex<Times>>);

#[derive(Debug, Default)]
struct Times {
    ended: Duration,
    /// When those that have not ended began.
    open: Vec<Instant>,
}

/// A stretch of a [`Timer`], which ends with this value.
#[derive(Debug)]
pub struct Stretch {
    timer: Timer,
    begun: Instant,
}

impl Timer {
    /// Begins a stretch.
    pub fn begin(&self) -> Stretch {
        let begun = Instant::now();
        self.times().open.push(begun);
        Stretch { timer: self.clone(), begun }
    }

    fn ms(&self) -> f64 {
        let times = self.times();
        let open: Duration = times.open.iter().map(Instant::elapsed).sum();
        (times.ended + open).as_secs_f64() * 1e3
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        let mut times = self.timer.times();
        times.ended += self.begun.elapsed();
        let at = times.open.iter().position(|begun| *begun == self.begun);
        at.map(|at| times.open.swap_remove(at));
    }
}

/// What the steps of the loop count.
#[derive(Debug, Default)]
pub struct Phases {
    pub(crate) claims: Counter,
    pub(crate) claim_time: Timer,
    pub(crate) claimed_runs: Counter,
    pub(crate) snapshot_hits: Counter,
    pub(crate) snapshot_misses: Counter,
    /// Time of threads that have a group to act on.
    pub(crate) busy_time: Timer,
    /// Time of threads that have none.
    pub(crate) idle_time: Timer,
    /// Time of busy threads that wait for their results to be settled.
    pub(crate) held_up_time: Timer,
    pub(crate) settles: Counter,
    pub(crate) settle_transactions: Counter,
    pub(crate) settled_runs: Counter,
    pub(crate) failed_runs: Counter,
    pub(crate) settled_rows: Counter,
    pub(crate) settle_time: Timer,
    pub(crate) late: Counter,
    pub(crate) store_errors: Counter,
}

/// The phases of one worker over a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhaseReport {
    /// The stretch.
    pub wall_ms: f64,
    /// Threads at work.
    pub threads: u64,
    /// Calls to claim.
    pub claims: u64,
    /// Their time.
    pub claim_ms: f64,
    /// Runs that they leased.
    pub claimed_runs: u64,
    /// Leases whose snapshot was prepared already.
    pub snapshot_hits: u64,
    /// Leases whose snapshot was prepared for them.
    pub snapshot_misses: u64,
    /// Time of threads inside runs.
    pub act_ms: f64,
    /// Time of threads without work.
    pub idle_ms: f64,
    /// Time of threads waiting for settling.
    pub held_up_ms: f64,
    /// Flushes.
    pub settles: u64,
    /// Transactions that they took: more than one each if the store failed.
    pub settle_transactions: u64,
    /// Runs in them.
    pub settled_runs: u64,
    /// Failed ones among these.
    pub failed_runs: u64,
    /// Rows that they wrote.
    pub settled_rows: u64,
    /// Their time.
    pub settle_ms: f64,
    /// Leases found lost when settling or renewing.
    pub late: u64,
    /// Calls to the store that failed.
    pub store_errors: u64,
    /// The share of each phase.
    pub shares: Shares,
}

/// How much of the time each phase takes, in percent. Claiming and settling go on beside the threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Shares {
    /// Of the threads' time.
    pub act: f64,
    /// Of the threads' time.
    pub idle: f64,
    /// Of the threads' time.
    pub held_up: f64,
    /// Of the wall's time.
    pub claim: f64,
    /// Of the wall's time.
    pub settle: f64,
}

/// What keeps a worker from being faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The workload's own code.
    Acting,
    /// Waiting for leases, or there is no more work.
    Claiming,
    /// Waiting for the store to take results.
    Settling,
}

impl Phases {
    /// What was counted so far, over `wall`.
    pub fn report(&self, wall: Duration, threads: usize) -> PhaseReport {
        let held_up_ms = self.held_up_time.ms();
        let report = PhaseReport {
            wall_ms: wall.as_secs_f64() * 1e3,
            threads: threads as u64,
            claims: self.claims.get(),
            claim_ms: self.claim_time.ms(),
            claimed_runs: self.claimed_runs.get(),
            snapshot_hits: self.snapshot_hits.get(),
            snapshot_misses: self.snapshot_misses.get(),
            act_ms: (self.busy_time.ms() - held_up_ms).max(0.0),
            idle_ms: self.idle_time.ms(),
            held_up_ms,
            settles: self.settles.get(),
            settle_transactions: self.settle_transactions.get(),
            settled_runs: self.settled_runs.get(),
            failed_runs: self.failed_runs.get(),
            settled_rows: self.settled_rows.get(),
            settle_ms: self.settle_time.ms(),
            late: self.late.get(),
            store_errors: self.store_errors.get(),
            shares: Shares::default(),
        };
        report.with_shares()
    }
}

impl PhaseReport {
    /// What happened since an earlier report of the same worker.
    pub fn since(&self, earlier: &PhaseReport) -> PhaseReport {
        let report = PhaseReport {
            wall_ms: self.wall_ms - earlier.wall_ms,
            threads: self.threads,
            claims: self.claims - earlier.claims,
            claim_ms: self.claim_ms - earlier.claim_ms,
            claimed_runs: self.claimed_runs - earlier.claimed_runs,
            snapshot_hits: self.snapshot_hits - earlier.snapshot_hits,
            snapshot_misses: self.snapshot_misses - earlier.snapshot_misses,
            act_ms: self.act_ms - earlier.act_ms,
            idle_ms: self.idle_ms - earlier.idle_ms,
            held_up_ms: self.held_up_ms - earlier.held_up_ms,
            settles: self.settles - earlier.settles,
            settle_transactions: self.settle_transactions - earlier.settle_transactions,
            settled_runs: self.settled_runs - earlier.settled_runs,
            failed_runs: self.failed_runs - earlier.failed_runs,
            settled_rows: self.settled_rows - earlier.settled_rows,
            settle_ms: self.settle_ms - earlier.settle_ms,
            late: self.late - earlier.late,
            store_errors: self.store_errors - earlier.store_errors,
            shares: Shares::default(),
        };
        report.with_shares()
    }

    fn with_shares(mut self) -> Self {
        let share = |ms: f64, all: f64| (ms / all.max(f64::MIN_POSITIVE) * 100.0).clamp(0.0, 100.0);
        let of_threads = |ms| share(ms, self.wall_ms * self.threads as f64);
        let of_wall = |ms| share(ms, self.wall_ms);
        self.shares = Shares {
            act: of_threads(self.act_ms),
            idle: of_threads(self.idle_ms),
            held_up: of_threads(self.held_up_ms),
            claim: of_wall(self.claim_ms),
            settle: of_wall(self.settle_ms),
        };
        self
    }

    /// What keeps the worker from being faster.
    pub fn limit(&self) -> Limit {
        let Shares { act, idle, held_up, .. } = self.shares;
        if act >= idle && act >= held_up {
            Limit::Acting
        } else if held_up >= idle {
            Limit::Settling
        } else {
            Limit::Claiming
        }
    }

    /// The limit, and what to do about it.
    pub fn advice(&self) -> String {
        let Shares { act, idle, held_up, .. } = self.shares;
        if self.failed_runs > 0 && self.failed_runs == self.settled_runs {
            return "every run failed: mend that first".to_owned();
        }
        match self.limit() {
            // How fast runs are is not known before one has ended.
            Limit::Acting if self.settled_runs == 0 => {
                format!("acting is {act:.0} % of the time, and no run has ended yet")
            }
            Limit::Acting => format!("acting is {act:.0} % of the time: more workers will help"),
            Limit::Claiming => format!(
                "threads had nothing to do for {idle:.0} % of the time: \
                 more workers will not help, more work will"
            ),
            Limit::Settling => format!(
                "threads waited {held_up:.0} % of the time for results to be settled: \
                 the store is the limit; fewer kept results (--keep) will help"
            ),
        }
    }

    /// All of it for people, a line per phase.
    pub fn lines(&self) -> [String; 5] {
        let per = |total: f64, count: u64| total / count.max(1) as f64;
        let Shares { act, idle, held_up, claim, settle } = self.shares;
        [
            format!(
                "claims {} ({:.0} ms, {claim:.0} % of the time, {:.1} ms each, {:.0} runs each)",
                self.claims,
                self.claim_ms,
                per(self.claim_ms, self.claims),
                per(self.claimed_runs as f64, self.claims),
            ),
            format!("snapshots {} hits, {} misses", self.snapshot_hits, self.snapshot_misses),
            format!(
                "settles {} ({} runs, {} rows, {} transactions, {:.0} ms, {settle:.0} % of the \
                 time, {:.1} ms each), {} late",
                self.settles,
                self.settled_runs,
                self.settled_rows,
                self.settle_transactions,
                self.settle_ms,
                per(self.settle_ms, self.settles),
                self.late,
            ),
            format!(
                "threads acted for {:.0} ms: {act:.0} % of their time, {idle:.0} % without work, \
                 {held_up:.0} % waiting to settle",
                self.act_ms,
            ),
            self.advice(),
        ]
    }
}

impl std::fmt::Display for PhaseReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.lines().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(act_ms: f64, idle_ms: f64, held_up_ms: f64) -> PhaseReport {
        let (wall_ms, threads) = (50.0, 2);
        PhaseReport { wall_ms, threads, act_ms, idle_ms, held_up_ms, ..PhaseReport::default() }
            .with_shares()
    }

    #[test]
    fn advice_names_the_limit() {
        let check = |report: PhaseReport, expect: &str| {
            assert!(report.advice().contains(expect), "{}", report.advice());
        };
        check(report(96.0, 2.0, 2.0), "no run has ended yet");
        let settled = PhaseReport { settled_runs: 1, ..report(96.0, 2.0, 2.0) };
        check(settled, "acting is 96 % of the time: more workers will help");
        check(report(10.0, 80.0, 10.0), "nothing to do for 80 %");
        check(report(30.0, 10.0, 60.0), "waited 60 %");
        let failing = PhaseReport { settled_runs: 7, failed_runs: 7, ..report(96.0, 2.0, 2.0) };
        check(failing.clone(), "every run failed");
        check(PhaseReport { settled_runs: 8, ..failing }, "more workers will help");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_not_ended_counts_as_far_as_it_got() {
        let phases = Phases::default();
        let (busy, claim) = (phases.busy_time.begin(), phases.claim_time.begin());
        let second = Duration::from_secs(1);
        tokio::time::advance(second).await;
        let held_up = phases.held_up_time.begin();
        let first = phases.report(second, 1);
        assert_eq!((first.act_ms, first.shares.act, first.shares.claim), (1e3, 100.0, 100.0));
        drop(claim);
        tokio::time::advance(second).await;
        drop((busy, held_up));
        let both = phases.report(2 * second, 1);
        assert_eq!((both.act_ms, both.held_up_ms, both.shares.claim), (1e3, 1e3, 50.0));
        let later = both.since(&first);
        assert_eq!((later.wall_ms, later.act_ms, later.shares.held_up), (1e3, 0.0, 100.0));
    }
}
