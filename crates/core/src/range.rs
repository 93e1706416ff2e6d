//! `[lo, hi)` of a batch: the unit of lease.

use serde::{Deserialize, Serialize};

/// A half-open interval of run indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Range {
    /// First index inside.
    pub lo: u64,
    /// First index outside.
    pub hi: u64,
}

impl Range {
    /// `[lo, hi)`; `lo` must not be above `hi`.
    pub fn new(lo: u64, hi: u64) -> Self {
        assert!(lo <= hi, "a range runs upwards: [{lo}, {hi})");
        Self { lo, hi }
    }

    /// How many indexes are inside.
    pub fn len(&self) -> u64 {
        self.hi - self.lo
    }

    /// Whether no index is inside.
    pub fn is_empty(&self) -> bool {
        self.lo == self.hi
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}, {})", self.lo, self.hi)
    }
}
