//! What outlives a process.

use crate::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The last level that was good on a (connection, operation class): kept in a store, it spares the
/// next process to learn it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    /// Which connection.
    pub connection: String,
    /// Which operation class.
    pub class: String,
    /// The level.
    pub level: u32,
    /// Whether the service rejected more than that.
    pub throttled: bool,
    /// How long, from then on, the service wants to be left alone.
    #[serde(with = "crate::time::seconds")]
    pub retry_after: Duration,
    /// When it was good.
    #[serde(with = "crate::time::seconds")]
    pub at: Time,
}
