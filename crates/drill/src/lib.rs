//! An HTTP service on loopback that throttles as declared; in [`postgres`] private servers that crash and fail
//! over; and in [`dynamodb`] a proxy that does what DynamoDB does to its clients.
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
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use std::time::Duration;
//! use tidegate_drill::{Concurrency, Service, Spec};
//!
//! let spec = Spec {
//!     delay: Duration::from_millis(20),
//!     concurrency: Some(Concurrency { limit: 5 }),
//!     ..Spec::default()
//! };
//! let service = Service::start(spec, "127.0.0.1:0".parse().unwrap()).unwrap();
//! // … send records to `service.url()`/records …
//! assert_eq!(service.counters().throttled.total, 0);
//! service.stop().await;
//! # });
//! ```

mod answer;
mod app;
mod counters;
mod crew;
mod dataverse;
pub mod dynamodb;
mod exchange;
mod execution;
mod guard;
pub mod history;
mod json;
mod ledger;
mod limits;
pub mod plan;
pub mod postgres;
pub mod recorder;
mod routes;
mod service;
mod spec;
mod work;

pub use counters::{Counters, Throttled};
pub use crew::{Crew, Ended};
pub use guard::Guard;
pub use service::Service;
#[cfg(feature = "tls")]
pub use spec::Tls;
pub use spec::{Budget, BudgetKind, Concurrency, Dataverse, Hint, InvalidSpec, Knee, Rate, Spec};
