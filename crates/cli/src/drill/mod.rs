//! Drills: relays and workers as processes, faults of all kinds, and a judgment of what is left.

pub mod batch;
mod faults;
pub mod relay;
mod report;
mod stage;
