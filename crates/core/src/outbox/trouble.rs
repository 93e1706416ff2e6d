//! Sinks that take nothing at the moment, as relays find them.

use crate::WorkerId;
use serde::Serialize;
use std::time::Duration;

/// What a relay says about its sinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TroubleNote {
    /// Which relay.
    pub relay: WorkerId,
    /// The sinks that are in trouble.
    pub sinks: Vec<TroubledSink>,
    /// How long that is believed unless it is said again: the relay may be killed.
    pub valid: Duration,
}

/// A sink that takes nothing from a relay, or puts some of it off for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TroubledSink {
    /// Its name.
    pub sink: String,
    /// What is wrong.
    pub reason: String,
    /// For how long, when it is noted.
    pub lasts: Duration,
}

/// A sink that takes nothing at the moment, or one of whose destinations does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SinkTrouble {
    /// Its name.
    pub sink: String,
    /// Why it takes nothing, as the relay says that noticed first.
    pub reason: String,
    /// For how long it has taken nothing.
    pub lasts: Duration,
    /// How many relays say so.
    pub relays: u64,
}
