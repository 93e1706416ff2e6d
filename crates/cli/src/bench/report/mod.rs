//! What was measured, and what became of the promises.

mod table;
mod verdict;

use super::meter::Server;
use serde::Serialize;
use std::{collections::BTreeMap, time::Duration};
use tidegate::{Aggregates, PhaseReport};
pub use verdict::{Bound, Judge, Verdict, verdicts};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    pub store: &'static str,
    pub threads: usize,
    pub server: Option<Server>,
    pub modes: Vec<Mode>,
    pub submit_ms: Option<f64>,
    pub copies: Vec<Copied>,
    pub embedded: Option<Mode>,
    pub scaling: Vec<Scaled>,
    pub bits: Vec<Way>,
    /// How many times faster than each other mode `ranges` is.
    pub ratios: BTreeMap<&'static str, f64>,
    pub verdicts: Vec<Verdict>,
}

/// One way to carry out runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Mode {
    pub name: &'static str,
    pub runs: u64,
    pub seconds: f64,
    pub runs_per_second: f64,
    /// Without the begin and the end of transactions.
    pub statements: u64,
    pub statements_per_run: f64,
    /// Those that write.
    pub transactions: Option<u64>,
    pub wal_bytes_per_run: Option<f64>,
    /// For adding the rows before the clock starts, where there are any.
    pub enqueue_seconds: Option<f64>,
    pub phases: Option<PhaseReport>,
}

impl Mode {
    /// … with these statements and transactions.
    pub fn doing(mut self, statements: u64, transactions: Option<u64>) -> Self {
        self.statements = statements;
        self.statements_per_run = statements as f64 / self.runs as f64;
        self.transactions = transactions;
        self
    }

    /// … on rows that took this long to add.
    pub fn after_enqueuing(mut self, time: Duration) -> Self {
        self.enqueue_seconds = Some(time.as_secs_f64());
        self
    }

    /// … with its time spent like this.
    pub fn in_phases(mut self, phases: PhaseReport) -> Self {
        self.phases = Some(phases);
        self
    }

    /// Runs per second of time inside settling.
    pub fn settling_rate(&self) -> Option<f64> {
        let phases = self.phases.as_ref()?;
        Some(phases.settled_runs as f64 / (phases.settle_ms / 1e3))
    }
}

/// A batch of Tidegate, and COPY of the pages that it wrote.
#[derive(Clone, Debug, Serialize)]
pub struct Copied {
    pub workload: String,
    pub ranges_runs_per_second: f64,
    /// By the time inside settling alone: the store's part, without the workload's.
    pub settling_runs_per_second: Option<f64>,
    pub pages: usize,
    pub bytes: usize,
    /// One COPY and one commit for each page.
    pub runs_per_second_by_page: f64,
    /// One COPY and one commit for all.
    pub runs_per_second_at_once: f64,
}

impl Copied {
    /// Tidegate's part of COPY's speed. A settled page is durable; so is a copied one only with a
    /// commit of its own.
    pub fn ratio(&self) -> f64 {
        self.ranges_runs_per_second / self.runs_per_second_by_page
    }
}

/// One worker process beside several.
#[derive(Clone, Debug, Serialize)]
pub struct Scaled {
    pub workload: &'static str,
    pub run_ms: f64,
    pub processes: usize,
    pub seconds_one: f64,
    pub seconds_many: f64,
    pub ratio: f64,
    #[serde(skip)]
    pub target: f64,
}

/// A way to carry out a batch, and whether it comes to the same.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    pub way: String,
    pub digest: String,
    /// Digest and aggregates are those of a calm run in memory.
    pub same: bool,
}

impl Way {
    pub fn new(way: String, calm: &Aggregates, found: &Aggregates) -> Self {
        Self { way, digest: found.digest.to_string(), same: calm == found }
    }
}

impl Report {
    pub fn new(store: &'static str, threads: usize, server: Option<Server>) -> Self {
        Self {
            store,
            threads,
            server,
            modes: Vec::new(),
            submit_ms: None,
            copies: Vec::new(),
            embedded: None,
            scaling: Vec::new(),
            bits: Vec::new(),
            ratios: BTreeMap::new(),
            verdicts: Vec::new(),
        }
    }

    fn mode(&self, name: &str) -> Option<&Mode> {
        self.modes.iter().find(|mode| mode.name == name)
    }

    /// How many times faster than another mode Tidegate is.
    fn ranges_over(&self, name: &str) -> Option<f64> {
        Some(self.mode("ranges")?.runs_per_second / self.mode(name)?.runs_per_second)
    }

    /// Compares what was measured with what is promised.
    pub fn judge(&mut self) {
        let others = self.modes.iter().map(|mode| mode.name).filter(|name| *name != "ranges");
        self.ratios = others.filter_map(|name| Some((name, self.ranges_over(name)?))).collect();
        self.verdicts = verdict::all(self);
    }
}

/// The middle one; of an even number, the lower of the two.
pub fn median_by<T>(mut items: Vec<T>, key: impl Fn(&T) -> f64) -> Option<T> {
    items.sort_by(|a, b| key(a).total_cmp(&key(b)));
    let middle = items.len().checked_sub(1)? / 2;
    Some(items.swap_remove(middle))
}
