//! Where a worker's time goes, and what limits it.

use serde::Serialize;
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Adds a time, in nanoseconds.
    pub fn add_time(&self, time: Duration) {
        self.add(time.as_nanos() as u64);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn ms(&self) -> f64 {
        self.get() as f64 / 1e6
    }
}

/// What the steps of the loop count.
#[derive(Debug, Default)]
pub struct Phases {
    pub(crate) claims: Counter,
    pub(crate) claim_time: Counter,
    pub(crate) claimed_runs: Counter,
    pub(crate) snapshot_hits: Counter,
    pub(crate) snapshot_misses: Counter,
    /// Time of threads inside the runs that were settled.
    pub(crate) act_time: Counter,
    /// Time of threads that had nothing to act on.
    pub(crate) idle_time: Counter,
    /// Time of threads that waited for their results to be settled.
    pub(crate) held_up_time: Counter,
    pub(crate) settles: Counter,
    pub(crate) settled_runs: Counter,
    pub(crate) settled_rows: Counter,
    pub(crate) settle_time: Counter,
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
    /// Flushes, each one transaction.
    pub settles: u64,
    /// Runs in them.
    pub settled_runs: u64,
    /// Rows that they wrote.
    pub settled_rows: u64,
    /// Their time.
    pub settle_ms: f64,
    /// Leases found lost when settling or renewing.
    pub late: u64,
    /// Calls to the store that failed.
    pub store_errors: u64,
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
        PhaseReport {
            wall_ms: wall.as_secs_f64() * 1e3,
            threads: threads as u64,
            claims: self.claims.get(),
            claim_ms: self.claim_time.ms(),
            claimed_runs: self.claimed_runs.get(),
            snapshot_hits: self.snapshot_hits.get(),
            snapshot_misses: self.snapshot_misses.get(),
            act_ms: self.act_time.ms(),
            idle_ms: self.idle_time.ms(),
            held_up_ms: self.held_up_time.ms(),
            settles: self.settles.get(),
            settled_runs: self.settled_runs.get(),
            settled_rows: self.settled_rows.get(),
            settle_ms: self.settle_time.ms(),
            late: self.late.get(),
            store_errors: self.store_errors.get(),
        }
    }
}

impl PhaseReport {
    /// What happened since an earlier report of the same worker.
    pub fn since(&self, earlier: &PhaseReport) -> PhaseReport {
        PhaseReport {
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
            settled_runs: self.settled_runs - earlier.settled_runs,
            settled_rows: self.settled_rows - earlier.settled_rows,
            settle_ms: self.settle_ms - earlier.settle_ms,
            late: self.late - earlier.late,
            store_errors: self.store_errors - earlier.store_errors,
        }
    }

    /// The share of the threads' time in each phase, in percent: acting, claiming, settling.
    pub fn shares(&self) -> (f64, f64, f64) {
        let all = (self.wall_ms * self.threads as f64).max(f64::MIN_POSITIVE);
        let share = |ms: f64| (ms / all * 100.0).min(100.0);
        (share(self.act_ms), share(self.idle_ms), share(self.held_up_ms))
    }

    /// What keeps the worker from being faster.
    pub fn limit(&self) -> Limit {
        let (act, idle, held_up) = self.shares();
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
        let (act, idle, held_up) = self.shares();
        if act + idle + held_up < 1.0 {
            return "nothing was settled in this time".to_owned();
        }
        match self.limit() {
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
        let (act, idle, held_up) = self.shares();
        [
            format!(
                "claims {} ({:.0} ms, {:.1} ms each, {:.0} runs each)",
                self.claims,
                self.claim_ms,
                per(self.claim_ms, self.claims),
                per(self.claimed_runs as f64, self.claims),
            ),
            format!("snapshots {} hits, {} misses", self.snapshot_hits, self.snapshot_misses),
            format!(
                "settles {} ({} runs, {} rows, {} transactions, {:.0} ms, {:.1} ms each), {} late",
                self.settles,
                self.settled_runs,
                self.settled_rows,
                self.settles,
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

    fn check(act_ms: f64, idle_ms: f64, held_up_ms: f64, expect: &str) {
        let report = PhaseReport {
            wall_ms: 50.0,
            threads: 2,
            act_ms,
            idle_ms,
            held_up_ms,
            ..PhaseReport::default()
        };
        assert!(report.advice().contains(expect), "{}", report.advice());
    }

    #[test]
    fn advice_names_the_limit() {
        check(96.0, 2.0, 2.0, "acting is 96 % of the time: more workers will help");
        check(10.0, 80.0, 10.0, "nothing to do for 80 %");
        check(30.0, 10.0, 60.0, "waited 60 %");
    }
}
