//! `tidegate load`, `pace` and `drill service`, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod bad_input;
mod delivery;
mod failover;
mod interrupted;
mod pacing;
mod tools;
mod world;
