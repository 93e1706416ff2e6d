//! The promised figures, each with what was measured.

use super::Report;
use crate::show::{number, table::table};
use serde::Serialize;

/// One promise.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub figure: String,
    pub measured: f64,
    pub target: f64,
    /// Whether the target is the least or the most that is allowed.
    pub bound: Bound,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    AtLeast,
    AtMost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    Missed,
    /// Measured on a server whose commits are not durable: says nothing.
    Void,
}

/// Collects verdicts on what was measured, and passes over what was not.
#[derive(Default)]
pub struct Judge {
    pub void: bool,
    pub verdicts: Vec<Verdict>,
}

impl Judge {
    pub fn check(&mut self, figure: &str, measured: Option<f64>, bound: Bound, target: f64) {
        let Some(measured) = measured else { return };
        let outcome = match bound {
            _ if self.void => Outcome::Void,
            Bound::AtLeast if measured >= target => Outcome::Ok,
            Bound::AtMost if measured <= target => Outcome::Ok,
            _ => Outcome::Missed,
        };
        let figure = figure.to_owned();
        self.verdicts.push(Verdict { figure, measured, target, bound, outcome });
    }
}

/// The promises as a table, for people.
pub fn verdicts(verdicts: &[Verdict]) -> String {
    let row = |verdict: &Verdict| {
        let bound = match verdict.bound {
            Bound::AtLeast => "at least",
            Bound::AtMost => "at most",
        };
        [
            verdict.figure.clone(),
            number::figure(verdict.measured),
            format!("{bound} {}", number::figure(verdict.target)),
            format!("{:?}", verdict.outcome).to_lowercase(),
        ]
    };
    table(["figure", "measured", "target", ""], 1, verdicts.iter().map(row).collect())
}

/// A verdict on every promise that was measured.
pub fn all(report: &Report) -> Vec<Verdict> {
    let void = report.server.as_ref().is_some_and(|server| !server.durable());
    let mut judge = Judge { void, verdicts: Vec::new() };
    if report.server.is_some() {
        on_server(report, &mut judge);
    }
    let ranges = report.mode("ranges");
    // Fewer runs than that are mostly beginning and end.
    let long = ranges.filter(|mode| mode.runs >= 100_000);
    let statements = long.map(|mode| mode.statements_per_run);
    judge.check("statements per run", statements, Bound::AtMost, 0.005);
    judge.check("submit 10,000,000 runs, ms", report.submit_ms, Bound::AtMost, 50.0);
    judge.void = false; // a file of the bench's own, always durable
    let same = report.bits.iter().filter(|way| way.same).count() as f64;
    let same = (!report.bits.is_empty()).then_some(same);
    judge.check("ways with the same bits", same, Bound::AtLeast, report.bits.len() as f64);
    let embedded = report.embedded.as_ref().map(|mode| mode.runs_per_second);
    judge.check("embedded, runs per second", embedded, Bound::AtLeast, 300_000.0);
    judge.verdicts
}

fn on_server(report: &Report, judge: &mut Judge) {
    use Bound::{AtLeast, AtMost};
    let ranges = report.mode("ranges");
    judge.check("ranges / per-run", report.ranges_over("per-run"), AtLeast, 100.0);
    judge.check("ranges / rows", report.ranges_over("rows"), AtLeast, 10.0);
    let wal = ranges.and_then(|mode| mode.wal_bytes_per_run);
    judge.check("WAL bytes per run", wal, AtMost, 30.0);

    for copied in &report.copies {
        let ratio = copied.ratio();
        let figure = format!("ranges / COPY of the same pages, {}", copied.workload);
        judge.check(&figure, Some(ratio), AtLeast, 0.5);
    }
    for scaled in &report.scaling {
        let figure = format!(
            "{} processes / one, {} {} ms",
            scaled.processes, scaled.workload, scaled.run_ms
        );
        judge.check(&figure, Some(scaled.ratio), AtLeast, scaled.target);
    }
}
