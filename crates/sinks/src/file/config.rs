//! What a user declares of a file sink.

use crate::{
    ConfigError,
    config::{max_group, timeout},
    pattern::{Pattern, Place},
    seconds,
};
use serde::Deserialize;
use std::{path::MAIN_SEPARATOR, time::Duration};

/// Beyond this, one call would hold up too much.
const MAX_GROUP: usize = 10_000;

/// What a user declares of a file sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The file, in a directory that exists. `{topic}` in the file's name stands for the topic.
    pub path: String,
    /// Whether lines are on the disk before their items are done. Without it, they are lost if the
    /// machine stops.
    #[serde(default = "yes")]
    pub sync: bool,
    /// Most items in a call: 1 to 10,000, by default 1,000.
    pub max_group: Option<usize>,
    /// How long a call may take; by default 60 s.
    #[serde(default = "seconds::a_minute", deserialize_with = "seconds::deserialize")]
    pub timeout: Duration,
}

fn yes() -> bool {
    true
}

impl Config {
    /// The file's path with its places.
    pub(super) fn pattern(&self) -> Result<Pattern, ConfigError> {
        let refused = |problem: &str| Err(ConfigError::new("path", problem));
        let pattern = Pattern::parse("path", &self.path)?;
        let separators = ['/', MAIN_SEPARATOR];
        if pattern.places().iter().any(|place| *place != Place::Topic) {
            return refused("has a place for more than the topic: use {topic} only");
        }
        let (before, after) = pattern.literals().split_at(1);
        if after.last().or(before.last()).is_some_and(|text| text.ends_with(separators)) {
            return refused("is a directory: add a file's name");
        }
        // A message must not be able to make directories, or to choose one.
        if after.iter().any(|text| text.contains(separators)) {
            return refused("has {topic} in a directory: put it into the file's name");
        }
        Ok(pattern)
    }

    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(1000), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_is_part_of_the_files_name_only() {
        let refused = |path: &str| {
            let config: Config = toml::from_str(&format!("path = '{path}'")).unwrap();
            config.pattern().map(|_| ()).map_err(|error| error.to_string())
        };
        for path in ["out.ndjson", "/var/out/{topic}.ndjson", "{topic}-{topic}"] {
            assert_eq!(refused(path), Ok(()), "{path}");
        }
        assert!(refused("/var/{topic}/out").unwrap_err().contains("in a directory"));
        assert!(refused("/var/out/").unwrap_err().contains("is a directory"));
        assert!(refused("{key}").unwrap_err().contains("{topic} only"));
        assert!(refused("").unwrap_err().contains("is empty"));
    }
}
