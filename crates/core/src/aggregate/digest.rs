//! An order-free hash over all (index, result).

use serde::{Deserialize, Serialize};
use std::fmt;

/// The sum of the hashes of all (index, result): equal sets of results have equal digests, whoever
/// computed them in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(u128);

impl Digest {
    /// Adds one result.
    pub fn add(&mut self, index: u64, result: &[u8]) {
        let mut key = *b"tidegate digest v1 ____ ________";
        key[24..].copy_from_slice(&index.to_le_bytes());
        let hash = blake3::keyed_hash(&key, result);
        let half = std::array::from_fn(|i| hash.as_bytes()[i]);
        self.merge(Digest(u128::from_le_bytes(half)));
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
