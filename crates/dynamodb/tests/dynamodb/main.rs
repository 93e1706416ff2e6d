//! The store against a server that speaks DynamoDB's language, through a proxy that counts and injects faults.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod aside;
mod delay;
mod fixture;
mod hand;
mod leases;
mod order;
mod publish;
mod replay;
mod requests;
mod retain;
mod settle;
mod sink;
mod steer;
mod tables;
