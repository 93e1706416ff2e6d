//! The right to one request.

use super::Gate;
use crate::{
    Time,
    answer::{Hint, Outcome},
    controller::Started,
};

/// The right to one request on one connection. Ended with its answer it teaches the pacer; dropped
/// without one it is given back, and nothing is learned.
#[must_use = "a permit that is dropped is given back at once"]
pub struct Permit {
    gate: Gate,
    connection: usize,
    started: Option<Started>,
}

impl Permit {
    pub(super) fn new(gate: Gate, connection: usize, started: Started) -> Self {
        Self { gate, connection, started: Some(started) }
    }

    /// On which connection to send it.
    pub fn connection(&self) -> usize {
        self.connection
    }

    /// The request ended like this.
    pub fn end(mut self, outcome: Outcome, hint: Hint, now: Time) {
        if let Some(started) = self.started.take() {
            let mut lane = self.gate.pacer.lane(self.connection);
            lane.connection.end(self.gate.index, started, outcome, hint, now);
            lane.room_changed();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(started) = self.started.take() {
            // No time passes here: what counts is that the permit is free again.
            let now = started.at;
            let mut lane = self.gate.pacer.lane(self.connection);
            lane.connection.abandon(self.gate.index, started, now);
            lane.room_changed();
        }
    }
}
