//! The engine and the memory store under a seeded scheduler and virtual time.
//!
//! A seed decides everything: batches, workers, how long runs and calls take, which worker is polled
//! next, which calls fail before or after they took effect, which workers crash, freeze or are asked
//! to stop, which run ends its worker each time, when the store goes back to what it held before. Afterwards a healthy worker finishes what is left, and one checker per law looks at the
//! whole history. A failing seed fails again:
//!
//! ```text
//! TIDEGATE_SIM_SEED=4711 cargo test -p tidegate-sim --test seeds
//! ```

pub mod checkers;
mod faults;
mod hands;
mod history;
mod plan;
pub mod relay;
mod scheduler;
mod store;
mod workload;
mod world;

pub use faults::Faults;
pub use history::{Event, History};
pub use plan::{Fate, Plan, Travel, WorkerPlan};
pub use world::{End, simulate};

/// Simulates what `seed` plans and checks every law; an error says which law broke, and how.
pub fn check_seed(seed: u64) -> Result<End, String> {
    check_plan(&Plan::from_seed(seed)).map_err(|broken| format!("seed {seed}: {broken}"))
}

/// Simulates a plan and checks every law.
pub fn check_plan(plan: &Plan) -> Result<End, String> {
    let end = simulate(plan);
    checkers::check_all(plan, &end)?;
    Ok(end)
}
