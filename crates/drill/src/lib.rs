//! An HTTP service on loopback that throttles as declared.
//!
//! Sinks are tested against it over real sockets, and a load can be tried against the limits that
//! the real destination is said to have: so many requests in flight, so many per second, budgets
//! over sliding windows, a knee in the response time, failures, refused records. What it saw is
//! counted, so that a test can say "nothing lost, nothing twice, no request inside a Retry-After".
//!
//! It speaks plain records (`/records`) and as much of Dataverse's Web API as loading needs
//! (`/api/data/v9.2`, `/oauth`). `GET /counters` reads the counters, `DELETE /counters` starts
//! again, `GET /health` answers.
//!
//! A request goes arrive → execute → finish → answer. What decides ([`Spec`] and time in, verdict
//! out) is in `ledger` and `limits`, without sockets and clocks; `exchange` carries it out. A
//! request's place in flight is free before its answer is written: a client that sends the next
//! request when it has the answer never exceeds a limit by itself.

// What only the shell uses is unused until it is there.
#![allow(dead_code, unused_imports)]

mod counters;
mod execution;
mod json;
mod ledger;
mod limits;
mod spec;
mod work;

pub use counters::{Counters, Throttled};
#[cfg(feature = "tls")]
pub use spec::Tls;
pub use spec::{Budget, BudgetKind, Concurrency, Dataverse, Hint, InvalidSpec, Knee, Rate, Spec};
