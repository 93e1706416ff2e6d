//! One file per command.

pub mod batch;
pub mod completions;
mod finish;
pub mod migrate;
pub mod run;
mod spec;
pub mod submit;
mod work;
pub mod worker;
pub mod workload;
