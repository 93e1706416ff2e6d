//! The order in which a relay reads a lane.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The place of a message in the order in which a relay reads its lane. On a log it is the message's id; a store that
/// is read by state gives it out when it reads.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Position(pub i64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
