//! Bingo, the small built-in workloads, and any program as a workload.

mod bingo;
pub mod exec;
mod flaky;
mod noop;
mod sleep;
mod spin;
mod wait;

pub use bingo::Bingo;
pub use exec::{Exec, ExecError};
pub use flaky::Flaky;
pub use noop::Noop;
pub use sleep::Sleep;
pub use spin::Spin;

use tidegate_core::Workloads;

/// The workloads that every process can carry out.
pub fn builtin() -> Workloads {
    Workloads::new().with(Bingo).with(Flaky).with(Noop).with(Sleep).with(Spin)
}

#[cfg(test)]
mod tests;
