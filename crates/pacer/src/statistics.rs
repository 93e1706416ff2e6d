//! What a pacer tells about itself.

use crate::{Time, decision::Decision};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// Where one (connection, operation class) stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Statistics {
    /// The connection.
    pub connection_name: String,
    /// The operation class.
    pub class: String,
    /// When it was first used: decisions count from here.
    #[serde(with = "crate::time::seconds")]
    pub since: Time,
    /// How much may be in flight, as far as was found out.
    pub current_parallelism: u32,
    /// How much may ever be.
    pub max_parallelism: u32,
    /// The level before the last throttle.
    pub last_known_good_parallelism: u32,
    /// Whether that is too long ago to count.
    pub is_last_known_good_stale: bool,
    /// Successes since the last throttle or increase.
    pub successes_since_throttle: u32,
    /// Throttles ever.
    pub total_throttle_events: u64,
    /// The last throttle.
    #[serde(with = "optional_seconds")]
    pub last_throttle_time: Option<Time>,
    /// The last increase.
    #[serde(with = "crate::time::seconds")]
    pub last_increase_time: Time,
    /// The last request or answer.
    #[serde(with = "crate::time::seconds")]
    pub last_activity_time: Time,
    /// Requests that wait for their answer.
    pub in_flight: u32,
    /// How much may be in flight, all ceilings considered …
    pub limit: u32,
    /// … and which of them binds.
    pub binding: Binding,
    /// The most that the service accepts, as far as is known.
    pub ceiling: Option<u32>,
    /// Requests per second that the service accepts, as far as is known.
    pub rate: Option<f64>,
    /// What a request takes.
    #[serde(with = "crate::time::seconds")]
    pub round_trip: Duration,
    /// The last decisions, oldest first.
    pub decisions: Vec<Decision>,
}

/// What holds requests back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// Nothing: there is room.
    #[default]
    Nothing,
    /// The level.
    Level,
    /// The most that options allow.
    Max,
    /// What the service asked for.
    Hint,
    /// A budget of requests.
    Requests,
    /// A budget of execution time.
    ExecutionSeconds,
    /// A budget of requests at the same time.
    Concurrent,
    /// The rate.
    Rate,
    /// What the service says is left.
    Quota,
    /// A Retry-After.
    RetryAfter,
    /// The answer to a trial.
    Trial,
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Binding::Nothing => "nothing",
            Binding::Level => "adaptive level",
            Binding::Max => "maximum",
            Binding::Hint => "the service's hint",
            Binding::Requests => "budget of requests",
            Binding::ExecutionSeconds => "budget of execution time",
            Binding::Concurrent => "budget of concurrent requests",
            Binding::Rate => "rate",
            Binding::Quota => "the service's quota",
            Binding::RetryAfter => "Retry-After",
            Binding::Trial => "the one request that asks first",
        })
    }
}

mod optional_seconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        value.map(|value| value.as_secs_f64()).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let seconds: Option<f64> = Option::deserialize(from)?;
        Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
    }
}
