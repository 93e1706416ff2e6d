//! What the proxy saw.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::AddAssign};

/// What the proxy saw since it started, or since its counters were last set to zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// By operation, such as `PutItem`.
    pub operations: BTreeMap<String, Count>,
}

/// What it saw of one operation.
///
/// `requests` is the sum of the requests that were answered as DynamoDB should, and of `refused`, `throttled` and
/// `cut`, once none is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Requests that arrived.
    pub requests: u64,
    /// Refused by the server: a condition that does not hold, an invalid request.
    pub refused: u64,
    /// Refused for their rate.
    pub throttled: u64,
    /// Left without an answer.
    pub cut: u64,
    /// Entries of batches that were handed back.
    pub unprocessed: u64,
    /// Read capacity units.
    pub read_units: f64,
    /// Write capacity units: also those of writes whose condition does not hold, without those of transactions that
    /// are cancelled.
    pub write_units: f64,
}

impl Counters {
    /// What it saw of this operation.
    pub fn of(&self, operation: &str) -> Count {
        self.operations.get(operation).copied().unwrap_or_default()
    }

    /// All operations together.
    pub fn total(&self) -> Count {
        let mut total = Count::default();
        self.operations.values().for_each(|count| total += *count);
        total
    }

    pub(super) fn add(&mut self, operation: &str, count: Count) {
        *self.operations.entry(operation.to_owned()).or_default() += count;
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.throttled += other.throttled;
        self.cut += other.cut;
        self.unprocessed += other.unprocessed;
        self.read_units += other.read_units;
        self.write_units += other.write_units;
    }
}
