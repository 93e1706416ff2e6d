//! Whether a store is still the one that a relay has read from.

/// Names one uninterrupted life of a store's data. A store that may have gone back in time (a crash, a failover,
/// a restored backup) gets another one. Everything that a relay remembers (leases, positions, numbers of
/// settlements) holds only within the epoch in which it was learned (law 16).
///
/// Stores that cannot go back under a living process have one epoch, the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epoch(pub String);
