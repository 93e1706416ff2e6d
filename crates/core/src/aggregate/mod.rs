//! What a batch says about all of its runs: mergeable, and the same bits whatever the split.
//!
//! Three choices make the aggregates independent of order and of the split into ranges (law 4):
//!
//! - sums are **exact** ([`exact`]): floating-point addition depends on its order, integer addition
//!   does not, so sums are kept as wide integers and rounded once, when they are shown;
//! - quantiles come from **counts per value** up to a number of distinct values, and beyond it from
//!   counts per log-linear bucket cut out of the number's own bits ([`histogram`]): no collapsing,
//!   no sampling, no logarithm that differs between machines;
//! - the digest is a **sum of hashes** ([`digest`]).

pub mod digest;
pub mod exact;
pub mod histogram;
pub mod series;
pub mod summary;

pub use digest::Digest;
pub use series::Series;
pub use summary::{NumberSummary, Summary};

use crate::run::Emitted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that is added up over the successful runs of a batch, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aggregates {
    /// How many successful runs are in it.
    pub runs: u64,
    /// Over all (index, result) of these runs.
    pub digest: Digest,
    /// By name.
    pub numbers: BTreeMap<Box<str>, Series>,
    /// By name, then by value: how many runs.
    pub categories: BTreeMap<Box<str>, BTreeMap<Box<str>, u64>>,
}

impl Aggregates {
    /// Adds one successful run.
    pub fn add(&mut self, index: u64, result: &[u8], emitted: &Emitted) {
        self.runs += 1;
        self.digest.add(index, result);
        for (name, value) in emitted.numbers() {
            change(&mut self.numbers, name, |series| series.add(value));
        }
        for (name, value) in emitted.categories() {
            change(&mut self.categories, name, |counts| change(counts, value, |count| *count += 1));
        }
    }

    /// Adds all runs of another part.
    pub fn merge(&mut self, other: &Aggregates) {
        self.runs += other.runs;
        self.digest.merge(other.digest);
        for (name, series) in &other.numbers {
            self.numbers.entry(name.clone()).or_default().merge(series);
        }
        for (name, counts) in &other.categories {
            let mine = self.categories.entry(name.clone()).or_default();
            for (value, count) in counts {
                *mine.entry(value.clone()).or_default() += count;
            }
        }
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("writing to memory does not fail")
    }

    /// Reads the stored form; `None` if it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// What people read.
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }
}

/// Changes the entry of this name. The name is copied only when it is new.
fn change<T: Default>(entries: &mut BTreeMap<Box<str>, T>, name: &str, how: impl FnOnce(&mut T)) {
    match entries.get_mut(name) {
        Some(entry) => how(entry),
        None => how(entries.entry(name.into()).or_default()),
    }
}

#[cfg(test)]
mod tests;
