//! What a user declares of an SNS sink.

use crate::{
    Allowed, ConfigError, Envelope, SecretSource,
    aws::{Access, MAX_GROUP, Naming, Places},
    config::{max_group, timeout},
    seconds,
};
use serde::Deserialize;
use std::{path::PathBuf, time::Duration};

/// What SNS takes in a message, and in a request.
pub const MAX_BYTES: usize = 256 << 10;

const NAMING: Naming = Naming {
    key: "topic",
    separator: ':',
    longest: 256,
    example: "its ARN, such as arn:aws:sns:eu-central-1:123456789012:{topic}",
};

/// What a user declares of an SNS sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The topic's ARN. `{topic}`, `{key}` and `{header:NAME}` in its name stand for an item's own. One
    /// whose name ends with `.fifo` is a FIFO topic.
    pub topic: String,
    /// Whose consumers read the messages; by default those that the page of the sink tells of.
    #[serde(default)]
    pub envelope: Envelope,
    /// Where the topic is: as its ARN says.
    pub region: Option<String>,
    /// Where the service is, if it is not Amazon's own.
    pub endpoint: Option<String>,
    /// Whose credentials to use, of the profiles in the AWS SDK's files.
    pub profile: Option<String>,
    /// The id of an access key, instead of credentials that the AWS SDK finds.
    pub access_key_id: Option<String>,
    /// The secret of the access key.
    pub secret_access_key: Option<SecretSource>,
    /// Most items in a group: 1 to 10, by default 10.
    pub max_group: Option<usize>,
    /// How long a delivery may take; by default 60 s.
    #[serde(default = "seconds::a_minute", deserialize_with = "seconds::deserialize")]
    pub timeout: Duration,
    /// Certificates to trust beside the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Where it may connect to although that is no public address.
    #[serde(default)]
    pub allow: Vec<Allowed>,
}

impl Config {
    pub(super) fn topics(&self) -> Result<Places, ConfigError> {
        let topics = Places::parse(&self.topic, NAMING)?;
        match region_of(topics.prefix()) {
            Some(_) => Ok(topics),
            None => {
                let problem = format!("is no topic of SNS: use {}", NAMING.example);
                Err(ConfigError::new("topic", problem))
            }
        }
    }

    pub(super) fn access<'a>(&'a self, region_of_place: Option<&'a str>) -> Access<'a> {
        Access {
            region: self.region.as_deref(),
            region_of_place,
            endpoint: self.endpoint.as_deref(),
            profile: self.profile.as_deref(),
            access_key_id: self.access_key_id.as_deref(),
            secret_access_key: self.secret_access_key.as_ref(),
            timeout: self.timeout,
            ca_file: self.ca_file.as_deref(),
            allow: &self.allow,
        }
    }

    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(MAX_GROUP), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }
}

/// The region that a topic's ARN names: `arn:PARTITION:sns:REGION:ACCOUNT:NAME`.
pub fn region_of(topic: &str) -> Option<&str> {
    let parts: Vec<&str> = topic.split(':').collect();
    match parts.as_slice() {
        ["arn", partition, "sns", region, account, _]
            if ![partition, region, account].iter().any(|part| part.is_empty()) =>
        {
            Some(region)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_topic_is_refused_with_what_is_one() {
        let made = |text: &str| {
            let config: Config = toml::from_str(text).unwrap();
            super::super::Sns::new(&config, &|_| None).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(made("topic = 'arn:aws:sns:eu-west-1:123456789012:{topic}.fifo'"), Ok(()));
        for topic in ["orders", "arn:aws:sqs:eu-west-1:1:q", "arn:aws:sns::1:t", "a:b"] {
            let refused = made(&format!("topic = '{topic}'")).unwrap_err();
            assert!(refused.contains("use its ARN, such as arn:aws:sns:"), "{refused}");
        }
        let refused = made("topic = 'arn:aws:sns:{topic}:1:t'").unwrap_err();
        assert!(refused.contains("before the name of the topic"), "{refused}");
        let refused =
            made("topic = 'arn:aws:sns:eu-west-1:1:t'\nregion = 'us-east-1'").unwrap_err();
        assert_eq!(refused, "`region` is us-east-1, but messages go to eu-west-1: remove the key");
    }
}
