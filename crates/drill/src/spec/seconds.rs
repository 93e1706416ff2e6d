//! Durations in files are numbers of seconds.

use serde::{Deserialize, Deserializer, de::Error};
use std::time::Duration;

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
}

/// The same for what may be absent.
pub mod optional {
    use super::{Deserializer, Duration};

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        super::deserialize(from).map(Some)
    }
}
