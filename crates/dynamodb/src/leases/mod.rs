//! Who has which lanes: one item of the side table, changed under conditions.
//!
//! DynamoDB has no clock that could end a lease. So a relay that lives writes another *beat* into the item every now
//! and then, and everybody else watches it: a relay whose beat has not changed for longer than its lease, by the
//! watcher's own clock, is gone. Nobody compares two clocks. The answer to a beat is the whole item, so that a relay
//! at rest sends one request for all of this.

mod expression;
mod io;
mod state;
mod tenure;
mod watch;

pub(crate) use expression::{Change, holds};
pub(crate) use io::leases_key;
pub(crate) use state::{Leases, Plan, Relay};
pub(crate) use tenure::Tenure;
pub(crate) use watch::Watch;
