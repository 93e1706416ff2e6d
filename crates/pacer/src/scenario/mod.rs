//! Trying a pacer on a simulated service: what arrives, how the service behaves, what must hold.
//!
//! Time is simulated, so that minutes take milliseconds and every run of a file is the same.
//!
//! ```
//! use tidegate_pacer::scenario::Scenario;
//!
//! let scenario: Scenario = r#"
//!     name = "defers above five in flight"
//!     requests = 500
//!     [service]
//!     delay = 0.1
//!     [service.concurrency]
//!     limit = 5
//!     action = "defer"
//!     [expect]
//!     makespan = [10.0, 13.0]
//! "#
//! .parse()?;
//! let report = scenario.run();
//! assert!(scenario.expect.check(&report).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod client;
mod events;
mod expect;
mod file;
mod ideal;
mod policies;
mod regain;
mod report;
mod run;
mod service;
pub mod tournament;
mod trace;
mod write;

pub use check::ScenarioError;
pub use expect::{Expect, Unmet};
pub use file::{Action, Change, HintSpec, LimitSpec, Scenario, ServiceBudget, ServiceSpec};
pub use policies::AnyPolicy;
pub use report::{Report, Spread};
pub use run::Patience;
pub use trace::{Point, Trace};
