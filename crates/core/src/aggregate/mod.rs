//! What a batch says about all of its runs: mergeable, and the same bits whatever the split.
//!
//! Four choices make the aggregates independent of order and of the split into ranges (law 4):
//!
//! - sums are **exact** ([`exact`]): floating-point addition depends on its order, integer addition
//!   does not, so sums are kept as wide integers and rounded once, when they are shown;
//! - quantiles come from **counts per value** up to a number of distinct values, and beyond it from
//!   counts per log-linear bucket cut out of the number's own bits ([`histogram`]): no collapsing,
//!   no sampling, no logarithm that differs between machines;
//! - names and categories beyond a number of them are **one** ([`named`]), whichever came first;
//! - the digest is a **sum of hashes** ([`digest`]).

pub mod digest;
pub mod exact;
pub mod histogram;
pub mod named;
pub mod series;
pub mod summary;

pub use digest::Digest;
pub use named::Named;
pub use series::Series;
pub use summary::{NumberSummary, Summary};

use crate::run::Emitted;
use serde::{Deserialize, Serialize};

/// Everything that is added up over the successful runs of a batch, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aggregates {
    /// How many successful runs are in it.
    pub runs: u64,
    /// Over all (index, result) of these runs.
    pub digest: Digest,
    /// By name.
    pub numbers: Named<Series>,
    /// By name, then by value: how many runs.
    pub categories: Named<Named<u64>>,
}

impl Aggregates {
    /// Adds one successful run.
    pub fn add(&mut self, index: u64, result: &[u8], emitted: &Emitted) {
        self.runs += 1;
        self.digest.add(index, result);
        for (name, value) in emitted.numbers() {
            self.numbers.change(name, |series| series.add(value));
        }
        for (name, value) in emitted.categories() {
            self.categories.change(name, |counts| counts.change(value, |count| *count += 1));
        }
    }

    /// Adds all runs of another part.
    pub fn merge(&mut self, other: &Aggregates) {
        self.runs += other.runs;
        self.digest.merge(other.digest);
        self.numbers.merge(&other.numbers);
        self.categories.merge(&other.categories);
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

#[cfg(test)]
mod tests;
