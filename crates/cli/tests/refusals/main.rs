//! What the command line refuses, so that no store is made or damaged by accident.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod addresses;
mod creating;
mod drills;
mod dropping;
mod failing;
mod outputs;
mod sinks;
mod unset;
