//! The sinks over real sockets: against the drill service, against answers given by hand, and
//! against brokers that `cargo xtask test` starts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![cfg_attr(
    not(all(
        feature = "http",
        feature = "dataverse",
        feature = "qdrant",
        feature = "file",
        feature = "stdout",
        feature = "nats",
        feature = "amqp",
        feature = "redis",
        feature = "aws"
    )),
    allow(dead_code, unused_imports, reason = "no single sink's tests use all that they share")
)]

#[cfg(feature = "http")]
mod addresses;
#[cfg(feature = "amqp")]
mod amqp;
#[cfg(feature = "http")]
mod answers;
#[cfg(feature = "aws")]
mod aws_answers;
#[cfg(feature = "aws")]
mod aws_order;
#[cfg(feature = "aws")]
mod aws_stub;
#[cfg(feature = "brighter")]
mod brighter;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis", feature = "aws"))]
mod broker_docs;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis", feature = "aws"))]
mod brokers;
#[cfg(any(feature = "http", feature = "qdrant"))]
mod canned;
#[cfg(feature = "http")]
mod credentials;
#[cfg(feature = "dataverse")]
mod dataverse;
#[cfg(feature = "http")]
mod delivery;
#[cfg(all(feature = "http", feature = "qdrant", feature = "file", feature = "stdout"))]
mod docs;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis", feature = "aws"))]
mod gate;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(any(feature = "file", feature = "stdout"))]
mod lines;
#[cfg(feature = "http")]
mod messages;
#[cfg(feature = "aws")]
mod moto;
#[cfg(feature = "nats")]
mod nats;
#[cfg(all(feature = "http", feature = "dataverse"))]
mod order;
#[cfg(feature = "qdrant")]
mod qdrant;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "aws")]
mod sns;
#[cfg(feature = "aws")]
mod sqs;
mod support;
#[cfg(feature = "http")]
mod tls;
#[cfg(feature = "dataverse")]
mod tokens;
