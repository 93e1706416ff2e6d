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
//! A store that has an outbox and nothing else gives a [`FreshOutbox`] and calls [`outbox_conformance!`]. Cases are picked
//! by its [`OutboxCapabilities`]: `outbox/list.rs` says which case needs what. Cases that every outbox must pass ask
//! `outbox/bench.rs` where stores may differ: how they list, who knows which message of a key is next, whose clock ends
//! a lease. Ids are whatever they are, and positions whatever a claim gives. Random histories are
//! compared with the memory store.
//!
//! ```
//! use tidegate_conformance::FreshOutbox;
//!
//! async fn fresh() -> FreshOutbox {
//!     let store = tidegate_core::Memory::new(|| std::time::Duration::from_secs(1));
//!     // A handle for people, and one for each relay: a store that is read by state remembers there what was read.
//!     FreshOutbox::new(move || store.clone()).afterwards(async { /* remove the table */ })
//! }
//!
//! tidegate_conformance::outbox_conformance!(fresh);
//! ```
//!
//! Such a store is tested without a minimum age, and against a server whose answers are consistent: what an index that
//! lags does to it is a matter for the simulator.
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
pub use fixture::{Fresh, FreshOutbox};
pub use list::cases;
pub use outbox::{outbox_cases, outbox_differential, outbox_histories};

use harness::Bench;
use std::{future::Future, pin::Pin, time::Duration};
use tidegate_core::{outbox::OutboxCapabilities, source::Capabilities};
use tokio::runtime::{Builder, Runtime};

/// No case takes long: one that does has met a deadlock.
const CASE_DEADLINE: Duration = Duration::from_secs(60);

/// One behavior that a store must have.
pub struct Case {
    /// Area and behavior: `claim::fences_grow`.
    pub name: &'static str,
    /// Whether a store with these capabilities must have it.
    pub applies: fn(&Capabilities) -> bool,
    run: fn(Bench) -> Running,
}

/// One behavior that an outbox must have.
pub struct OutboxCase {
    /// Area and behavior: `outbox_claim::a_reading_is_limited_by_count`.
    pub name: &'static str,
    /// Whether an outbox with these capabilities must have it.
    pub applies: fn(&OutboxCapabilities) -> bool,
    run: fn(outbox::bench::Bench) -> Running,
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Expands to one test per case and to the differential test. `$fixture` is a path or a closure:
/// `Fn() -> impl Future<Output = Fresh>`.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr) => {
        $crate::__each_case! { __tests ($fixture) }
        $crate::__each_outbox_case! { __outbox_tests (check_outbox_of $fixture) }

        #[test]
        fn outbox_differential() {
            $crate::outbox_differential($fixture);
        }
    };
}

/// The same for a store that has an outbox and nothing else, with a fixture that gives a [`FreshOutbox`].
#[macro_export]
macro_rules! outbox_conformance {
    ($fixture:expr) => {
        $crate::__each_outbox_case! { __outbox_tests (check_outbox $fixture) }

        #[test]
        fn outbox_histories() {
            $crate::outbox_histories($fixture);
        }
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
            in_time(name, (case.run)(bench)).await;
        }
        fresh.close().await;
    });
}

/// Runs one case of outboxes on a fresh store that has more than that.
pub fn check_outbox_of<F: Future<Output = Fresh>>(name: &str, fixture: impl Fn() -> F) {
    runtime().block_on(async {
        let fresh = fixture().await;
        run_outbox_case(name, fresh.outbox_bench()).await;
        fresh.close().await;
    });
}

/// Runs one case on a fresh outbox; panics if it does not have the behavior.
pub fn check_outbox<F: Future<Output = FreshOutbox>>(name: &str, fixture: impl Fn() -> F) {
    runtime().block_on(async {
        let fresh = fixture().await;
        run_outbox_case(name, fresh.outbox_bench()).await;
        fresh.close().await;
    });
}

async fn run_outbox_case(name: &str, bench: outbox::bench::Bench) {
    let case = outbox_cases().into_iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case `{name}`"));
    if (case.applies)(&bench.capabilities()) {
        in_time(name, (case.run)(bench)).await;
    }
}

async fn in_time(name: &str, run: Running) {
    let run = tokio::time::timeout(CASE_DEADLINE, run).await;
    run.unwrap_or_else(|_| panic!("`{name}` still runs after {CASE_DEADLINE:?}"));
}

/// More than one thread, so that concurrent calls really meet.
fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads can be started")
}
