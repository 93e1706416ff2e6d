//! Time, as an argument.

use std::time::Duration;

/// A point in time: how long after an origin that the caller chooses, and keeps. The pacer only
/// compares and subtracts. With the Unix epoch as its origin, times can be stored and shown.
pub type Time = Duration;

/// Durations in options and scenario files: seconds, with a fraction.
pub(crate) mod seconds {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(value.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(from)?;
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| D::Error::custom(format!("{seconds} is no number of seconds")))
    }
}
