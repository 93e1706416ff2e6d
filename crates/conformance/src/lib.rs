//! The suite that every store must pass.
//!
//! A store's `tests/conformance.rs` says how to make an empty store, and calls [`conformance!`]:
//! that gives one test per case, and the differential test against the memory store.
//!
//! ```
//! use tidegate_conformance::Fresh;
//!
//! async fn fresh() -> Fresh {
//!     Fresh::new(tidegate_core::Memory::new(|| std::time::Duration::from_secs(1)))
//! }
//!
//! tidegate_conformance::conformance!(fresh);
//! ```
//!
//! Cases do not wait. A lease or a delay is either zero, and has passed at once, or an hour, and
//! never passes: what depends on time is tested without depending on it.

mod chain;
mod claim;
mod claim_retries;
mod differential;
mod finalize;
mod fixture;
mod harness;
mod inspect;
mod list;
mod migrate;
mod outbox;
mod pace;
mod renew;
mod reopen;
mod settle;
mod settle_races;
mod steer;
mod submit;
mod suspects;
mod work;

pub use differential::differential;
pub use fixture::Fresh;
pub use list::cases;
pub use outbox::outbox_differential;

use harness::Bench;
use std::{future::Future, pin::Pin, time::Duration};
use tidegate_core::source::Capabilities;
use tokio::runtime::{Builder, Runtime};

/// No case takes long: one that does has met a deadlock.
const CASE_DEADLINE: Duration = Duration::from_secs(60);

/// One behavior that a store must have.
pub struct Case {
    /// Area and behavior: `claim::fences_grow`.
    pub name: &'static str,
    /// Whether a store with these capabilities must have it.
    pub applies: fn(&Capabilities) -> bool,
    run: fn(Bench) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Expands to one test per case and to the differential test. `$fixture` is a path or a closure:
/// `Fn() -> impl Future<Output = Fresh>`.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr) => {
        $crate::__each_case! { __tests ($fixture) }
    };
}

/// Runs one case on a fresh store; panics if the store does not have the behavior.
pub fn check<F: Future<Output = Fresh>>(name: &str, fixture: impl Fn() -> F) {
    let case = cases().into_iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case `{name}`"));
    runtime().block_on(async {
        let fresh = fixture().await;
        let bench = fresh.bench();
        if (case.applies)(&bench.capabilities()) {
            let run = tokio::time::timeout(CASE_DEADLINE, (case.run)(bench));
            run.await.unwrap_or_else(|_| panic!("`{name}` still runs after {CASE_DEADLINE:?}"));
        }
        fresh.close().await;
    });
}

/// More than one thread, so that concurrent calls really meet.
fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads can be started")
}
