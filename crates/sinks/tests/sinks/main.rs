//! The sinks over real sockets, against the drill service and against answers given by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![cfg_attr(
    not(all(
        feature = "http",
        feature = "dataverse",
        feature = "qdrant",
        feature = "file",
        feature = "stdout"
    )),
    allow(dead_code, unused_imports, reason = "no single sink's tests use all that they share")
)]

#[cfg(feature = "http")]
mod addresses;
#[cfg(feature = "http")]
mod answers;
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
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(any(feature = "file", feature = "stdout"))]
mod lines;
#[cfg(feature = "http")]
mod messages;
#[cfg(feature = "qdrant")]
mod qdrant;
mod support;
#[cfg(feature = "http")]
mod tls;
#[cfg(feature = "dataverse")]
mod tokens;
