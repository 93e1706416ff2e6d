//! What would lose messages. The laws are worth something if they find each of these.

/// A step that is left out, or done in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A claim waits for nobody who holds a lock.
    WaitsForNobody,
    /// A claim does not know of prepared transactions.
    ForgetsPrepared,
    /// A claim does not know of transactions that are being prepared.
    ForgetsPreparing,
    /// A claim looks at locks first, and then at the last id.
    LooksAtLocksFirst,
    /// A claim reads up to an id that was drawn after its snapshot.
    ReadsAtOnce,
    /// A publisher draws an id before it has its lock.
    LocksLate,
    /// A publisher draws an id before it has its number.
    NumbersLate,
    /// PostgreSQL gives locks up before others can see what was committed.
    ReleasesEarly,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::WaitsForNobody,
        Self::ForgetsPrepared,
        Self::ForgetsPreparing,
        Self::LooksAtLocksFirst,
        Self::ReadsAtOnce,
        Self::LocksLate,
        Self::NumbersLate,
        Self::ReleasesEarly,
    ];
}
