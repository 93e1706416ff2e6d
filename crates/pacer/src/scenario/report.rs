//! What came of a scenario.

use crate::Decision;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::{fmt, time::Duration};

/// The names of all figures.
pub(super) const KEYS: [&str; 20] = [
    "makespan",
    "ideal",
    "efficiency",
    "successes",
    "attempts",
    "rejects",
    "reject_share",
    "timeouts",
    "inside_retry_after",
    "in_flight.min",
    "in_flight.mean",
    "in_flight.max",
    "limit.min",
    "limit.mean",
    "limit.max",
    "rtt.min",
    "rtt.mean",
    "rtt.max",
    "jain",
    "jain.first",
];

/// What came of a scenario. Times are seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// From the first arrival to the last success.
    pub makespan: f64,
    /// What it would be for somebody who knows the service.
    pub ideal: f64,
    /// Requests that succeeded.
    pub successes: u64,
    /// Requests that were sent.
    pub attempts: u64,
    /// Requests that the service rejected.
    pub rejects: u64,
    /// Requests that were given up.
    pub timeouts: u64,
    /// Requests that were sent inside a Retry-After.
    pub inside_retry_after: u64,
    /// Requests in flight, weighted by time.
    pub in_flight: Spread,
    /// What the pacers allowed, weighted by time.
    pub limit: Spread,
    /// Round trips of answered requests.
    pub rtt: Spread,
    /// Jain's index of the pacers' successes, for each window of ten seconds.
    pub jain: Vec<f64>,
    /// Seconds after the last change of the service until nine tenths of it were in use.
    pub regained: Option<f64>,
    /// What the first pacer decided on its first connection.
    pub decisions: Vec<Decision>,
}

/// The least, the mean and the most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub max: f64,
}

impl Report {
    /// The share of the possible throughput that was reached.
    pub fn efficiency(&self) -> f64 {
        self.ideal / self.makespan
    }

    /// The share of all attempts that came to nothing.
    pub fn reject_share(&self) -> f64 {
        (self.rejects + self.timeouts) as f64 / self.attempts as f64
    }

    /// A figure by its name.
    pub fn get(&self, key: &str) -> Option<f64> {
        Some(match key {
            "makespan" => self.makespan,
            "ideal" => self.ideal,
            "efficiency" => self.efficiency(),
            "successes" => self.successes as f64,
            "attempts" => self.attempts as f64,
            "rejects" => self.rejects as f64,
            "reject_share" => self.reject_share(),
            "timeouts" => self.timeouts as f64,
            "inside_retry_after" => self.inside_retry_after as f64,
            // The window that ends a minute after the start, or the last one before.
            "jain" => *self.jain[..self.jain.len().min(6)].last()?,
            "jain.first" => *self.jain.first()?,
            _ => {
                let (name, part) = key.split_once('.')?;
                let spread = match name {
                    "in_flight" => &self.in_flight,
                    "limit" => &self.limit,
                    "rtt" => &self.rtt,
                    _ => return None,
                };
                match part {
                    "min" => spread.min,
                    "mean" => spread.mean,
                    "max" => spread.max,
                    _ => return None,
                }
            }
        })
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for key in KEYS.iter().filter(|key| !key.starts_with("jain")) {
            if let Some(value) = self.get(key) {
                map.serialize_entry(key, &value)?;
            }
        }
        map.serialize_entry("jain", &self.jain)?;
        map.end()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| 100.0 * share;
        writeln!(
            f,
            "  makespan    {:.2} s, {:.0} % of the ideal speed ({:.2} s)",
            self.makespan,
            percent(self.efficiency()),
            self.ideal
        )?;
        writeln!(
            f,
            "  attempts    {} for {} successes; {} rejected, {} timed out ({:.2} %), {} inside a Retry-After",
            self.attempts,
            self.successes,
            self.rejects,
            self.timeouts,
            percent(self.reject_share()),
            self.inside_retry_after
        )?;
        writeln!(f, "  in flight   {}", self.in_flight)?;
        writeln!(f, "  limit       {}", self.limit)?;
        write!(f, "  round trip  {} s", self.rtt)?;
        if self.jain.is_empty() {
            return Ok(());
        }
        let jain: Vec<String> = self.jain.iter().map(|index| format!("{index:.3}")).collect();
        write!(f, "\n  fairness    {} (Jain's index per 10 s)", jain.join(" "))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} to {:.3}, mean {:.3}", self.min, self.max, self.mean)
    }
}

/// Gathers a spread from values with weights.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gauge {
    sum: f64,
    weight: f64,
    range: Option<(f64, f64)>,
}

impl Gauge {
    pub fn add(&mut self, value: f64, weight: f64) {
        self.sum += value * weight;
        self.weight += weight;
        let (min, max) = self.range.unwrap_or((value, value));
        self.range = Some((min.min(value), max.max(value)));
    }

    pub fn over(&mut self, value: f64, time: Duration) {
        if !time.is_zero() {
            self.add(value, time.as_secs_f64());
        }
    }

    pub fn spread(&self) -> Spread {
        let (min, max) = self.range.unwrap_or_default();
        let mean = if self.weight > 0.0 { self.sum / self.weight } else { 0.0 };
        Spread { min, mean, max }
    }
}

/// How evenly something is shared: 1 is perfectly, 1/n is all to one of n.
pub(super) fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}
