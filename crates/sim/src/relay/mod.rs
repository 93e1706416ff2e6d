//! Relays and the memory store under a seeded scheduler and virtual time.
//!
//! A seed decides everything: what is published and when, where it goes, what sinks make of it and how
//! they fail, which relays start, crash, freeze, stop and come back, with which routes, and what an
//! operator does to the dead. Afterwards a healthy relay with healthy sinks delivers what is left, and
//! one checker per law looks at the whole history. Each kind of trouble is a [`Hazard`] that can be left
//! out, so that what breaks a law can be told. A failing seed fails again with the same hazards:
//!
//! ```text
//! TIDEGATE_SIM_HAZARDS=crash,hang TIDEGATE_SIM_SEED=4711 \
//!     cargo test -p tidegate-sim --test relay_seeds every_law
//! TIDEGATE_SIM_HISTORY=1 TIDEGATE_SIM_HAZARDS=crash,hang TIDEGATE_SIM_SEED=4711 \
//!     cargo test -p tidegate-sim --test relay_seeds a_history -- --nocapture
//! ```
//!
//! Messages come in by transactions whose ids are in no order of commits, as in PostgreSQL ([`database`]), unless a
//! world is spared that.
//!
//! A relay's main loop is polled by the scheduler of this crate, so that it can be dropped or left alone
//! between two awaits. What it spawns runs on the same single-threaded runtime, and waits at the seams
//! while its relay is frozen.

pub mod checkers;
pub mod database;
mod dice;
mod hazards;
mod history;
mod ice;
pub mod indexed;
mod late;
mod life;
mod routing;
mod scenario;
mod server;
mod sink;
mod store;
mod view;
mod wire;
mod world;

pub use hazards::{Hazard, Hazards};
pub use history::{Entry, Event};
pub use indexed::{IndexPlan, Shortcut};
pub use scenario::{Ending, GoBack, LifePlan, Scenario};
pub use world::{End, simulate};

/// Simulates what `seed` plans with these hazards and checks every law; an error says which law broke,
/// and how.
pub fn check_seed(seed: u64, hazards: Hazards) -> Result<End, String> {
    check(&Scenario::from_seed(seed, hazards)).map_err(|broken| format!("seed {seed}: {broken}"))
}

/// Simulates a scenario and checks every law.
pub fn check(scenario: &Scenario) -> Result<End, String> {
    let end = simulate(scenario)?;
    checkers::check_all(scenario, &end)?;
    Ok(end)
}
