//! The service over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod batch;
mod client;
mod dataverse;
mod faults;
mod lifecycle;
mod limits;
mod records;
#[cfg(feature = "tls")]
mod tls;
