//! The proxy in front of a server that plays DynamoDB.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod client;
mod counting;
mod faults;
mod lag;
mod tables;
