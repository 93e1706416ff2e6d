//! One file per command.

pub mod batch;
pub mod check;
pub mod completions;
pub mod doctor;
pub mod drill;
mod finish;
pub mod load;
pub mod migrate;
pub mod observed;
pub mod outbox;
pub mod pace;
pub mod publish;
pub mod relay;
pub mod run;
mod spec;
pub mod submit;
mod work;
pub mod worker;
pub mod workload;
