//! Adaptive pace for requests to a service that throttles: how much may be in flight on a
//! connection, and when the next request may start.
//!
//! The centre is pure: samples and a time go in, a decision with its reason comes out. Around it, a
//! thin [`Gate`] holds callers back. Nothing here knows what a request is, does I/O or has a clock of
//! its own.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_pacer::{Hint, Options, Outcome, Pacer};
//!
//! let pacer = Pacer::new(Options::default(), ["main".to_owned()])?;
//! let gate = pacer.gate("create");
//! let now = Duration::ZERO; // time is an argument: since whatever origin you choose
//!
//! let permit = gate.try_start(now).expect("the first request may start");
//! // … send it …
//! permit.end(Outcome::Succeeded, Hint::default(), now + Duration::from_millis(80));
//! assert_eq!(gate.statistics(now)[0].current_parallelism, 2);
//! # Ok::<(), tidegate_pacer::OutOfRange>(())
//! ```
//!
//! The limit is the lowest of three: what the service asks for (hints), what its budgets leave, and
//! what was found out from its answers. [`Statistics`] name the one that binds.

mod account;
mod answer;
mod bucket;
mod connection;
mod controller;
mod decision;
mod gate;
mod learned;
mod options;
mod remember;
#[cfg(feature = "scenario")]
pub mod scenario;
mod size;
mod statistics;
mod time;

pub use answer::{Hint, Outcome, Remaining};
pub use connection::Wait;
pub use decision::{Cause, Decision, Reason};
pub use gate::{Clock, Gate, Pacer, Permit, TooLong};
pub use options::{Budget, BudgetKind, Options, OutOfRange, Policy};
pub use remember::Remembered;
pub use size::Size;
pub use statistics::{Binding, Statistics};
pub use time::Time;
