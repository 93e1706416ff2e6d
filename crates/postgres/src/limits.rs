//! Every bound on connections and calls, in one place, each with its reason.
//!
//! A call has a deadline. When it passes, the connection is thrown away, the server is asked to stop the statement,
//! and connections that were idle meanwhile are not used again: whatever made one of them silent may have reached
//! all. The next call gets a new connection.
//!
//! | call | first deadline |
//! |---|---|
//! | share, claim, settle, give back of a relay; claim, renew, settle of a worker | a third of the lease, see [`of_lease`] |
//! | publish, submit, finalize, and what people ask for | `STORE_DEADLINE` of the core |
//! | migrate | `MIGRATION_DEADLINE`: indexes may have to be built |

use std::time::Duration;
use tidegate_core::limits::STORE_DEADLINE;

/// Connections per process: claims, settlements and renewals are few, and a server's connections are
/// shared by all workers.
pub(crate) const CONNECTIONS: usize = 4;

/// How long one server may take to accept a connection and to log in, unless the address says otherwise.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection is quiet before the kernel asks whether the other side is still there, and how often it asks
/// then. Without this it would first ask after two hours.
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
pub(crate) const KEEPALIVE_RETRIES: u32 = 3;

/// How long what was sent may stay unacknowledged by the other side's kernel: the default lease, because a relay that
/// waits for longer loses its lanes.
pub(crate) const TCP_USER_TIMEOUT: Duration = Duration::from_secs(15);

/// A connection that was idle for longer is tried before it is used: a statement that is sent into the void has an
/// unknown outcome, an empty one has none.
pub(crate) const IDLE_UNTRIED: Duration = Duration::from_secs(5);
/// How long that may take. A server that is only slow costs a new connection.
pub(crate) const TRIAL: Duration = Duration::from_secs(2);

/// How often a statement is sent again after a deadlock or a serialization failure. Each time it was
/// rolled back as a whole.
pub(crate) const CONFLICT_RETRIES: u32 = 4;
/// The longest pause before the first of these; it doubles.
pub(crate) const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// How long the server may take to hear that a statement is no longer wanted.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take for one of several times that it is told.
pub(crate) const CANCEL_TRY: Duration = Duration::from_secs(1);
/// How long it has before it is told again.
pub(crate) const CANCEL_AGAIN: Duration = Duration::from_millis(200);

/// Indexes may have to be built.
pub(crate) const MIGRATION_DEADLINE: Duration = Duration::from_secs(3_600);

/// A server that is merely busy must be able to answer, however short the lease.
const SHORTEST_DEADLINE: Duration = Duration::from_secs(1);

/// The deadline of a call that must be over while a lease still holds: a third of it, so that there is time for
/// a second try on another connection. It doubles with each deadline in a row that the same operation has missed: a
/// statement that takes long gets its time in the end.
pub(crate) fn of_lease(lease: Duration, missed: u32) -> Duration {
    let first = (lease / 3).max(SHORTEST_DEADLINE);
    first.saturating_mul(1 << missed.min(16)).min(STORE_DEADLINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_follow_the_lease_and_grow_when_they_are_missed() {
        let seconds = |lease, missed| of_lease(Duration::from_secs(lease), missed).as_secs();
        assert_eq!([0, 1, 2, 3, 99].map(|missed| seconds(15, missed)), [5, 10, 20, 30, 30]);
        assert_eq!(seconds(1, 0), 1);
        assert_eq!(seconds(3_600, 0), 30);
    }
}
