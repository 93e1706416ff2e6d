//! An order-free hash over all (index, result).

use serde::{Deserialize, Serialize};
use std::fmt;
use twox_hash::XxHash3_128;

/// The sum of the hashes of all (index, result): equal sets of results have equal digests, whoever
/// computed them in whatever order. It finds mistakes, not forgers: XXH3 with 128 bits, because a
/// cryptographic hash would take longer than a short run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(u128);

impl Digest {
    /// Adds one result.
    pub fn add(&mut self, index: u64, result: &[u8]) {
        self.merge(Digest(XxHash3_128::oneshot_with_seed(index, result)));
    }

    /// Adds all results of another part.
    pub fn merge(&mut self, other: Digest) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
