//! The sinks over real sockets: against the drill service, against answers given by hand, and
//! against brokers that `cargo xtask test` starts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![cfg_attr(
    not(all(feature = "http", feature = "nats", feature = "amqp", feature = "redis")),
    allow(dead_code, reason = "no single sink's tests use all that they share")
)]

#[cfg(feature = "http")]
mod addresses;
#[cfg(feature = "amqp")]
mod amqp;
#[cfg(feature = "http")]
mod answers;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis"))]
mod brokers;
#[cfg(feature = "http")]
mod canned;
#[cfg(feature = "http")]
mod credentials;
#[cfg(feature = "dataverse")]
mod dataverse;
#[cfg(feature = "http")]
mod delivery;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis"))]
mod docs;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis"))]
mod gate;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "redis")]
mod redis;
mod support;
#[cfg(feature = "http")]
mod tls;
#[cfg(feature = "dataverse")]
mod tokens;
