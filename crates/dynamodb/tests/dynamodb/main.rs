//! The store against a server that speaks DynamoDB's language, through a proxy that counts and injects faults.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod aside;
mod fixture;
mod leases;
mod order;
mod publish;
mod repeat;
mod requests;
mod sink;
mod tables;
