//! Ports that stay free while their server is down.

use super::Failed;
use std::{
    hash::{BuildHasher, RandomState},
    net::TcpListener,
};

/// Below the ports that systems give to outgoing connections. A client that tries again and again to reach a port
/// among those can be given that very port for its own end, and is then connected to itself.
const LOWEST: u16 = 12_000;
const HIGHEST: u16 = 31_999;
const TRIES: u64 = 200;

/// A loopback port that nobody listens on.
pub(super) fn free() -> Result<u16, Failed> {
    let noise = RandomState::new();
    let range = u64::from(HIGHEST - LOWEST) + 1;
    let mut tried = (0..TRIES).map(|n| LOWEST + (noise.hash_one(n) % range) as u16);
    let found = tried.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    found.ok_or_else(|| Failed("cannot find a free port on 127.0.0.1".to_owned()))
}
