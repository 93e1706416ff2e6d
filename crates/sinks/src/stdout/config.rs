//! What a user declares of standard output.

use crate::{
    ConfigError,
    config::{max_group, timeout},
    seconds,
};
use serde::Deserialize;
use std::time::Duration;

/// Beyond this, one call would hold up too much.
const MAX_GROUP: usize = 10_000;

/// What a user declares of standard output. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Most items in a call: 1 to 10,000, by default 1,000.
    pub max_group: Option<usize>,
    /// How long a call may take; by default 60 s.
    #[serde(default = "seconds::a_minute", deserialize_with = "seconds::deserialize")]
    pub timeout: Duration,
}

impl Config {
    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(1000), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }
}
