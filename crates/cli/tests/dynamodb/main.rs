//! An outbox in DynamoDB, by the command line.

#![cfg(feature = "dynamodb")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "aws")]
mod brighter;
mod page;
mod refusals;
mod relaying;
mod world;
