//! The loop that everything Tidegate does is one turn of:
//!
//! ```text
//! room → claim → group → act → settle → finalize
//! ```
//!
//! One file per step. [`Worker::run`] is the loop; it knows stores only through
//! [`Source`](tidegate_core::Source) and code only through
//! [`Workloads`](tidegate_core::Workloads).

pub mod act;
mod backoff;
mod claim;
pub mod deliver;
mod finalize;
mod group;
mod length;
pub mod options;
pub mod phases;
pub mod relay;
mod renew;
mod room;
mod settle;
mod snapshots;
pub mod stop;
mod totals;
mod worker;

pub use act::{Desk, Hands, Threads};
pub use deliver::Deliverer;
pub use options::{UnfitLease, Until, WorkerOptions};
pub use phases::{Limit, PhaseReport};
pub use relay::{Relay, RelayOptions};
pub use stop::Stop;
pub use worker::{Report, Worker, WorkerError};
