//! Durations in configs are numbers of seconds.

use serde::{Deserialize, Deserializer, de::Error};
use std::time::Duration;

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
}

/// How long a request may take if nothing is declared.
pub fn a_minute() -> Duration {
    Duration::from_secs(60)
}
