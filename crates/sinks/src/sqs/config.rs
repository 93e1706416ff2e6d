//! What a user declares of an SQS sink.

use crate::{
    Allowed, ConfigError, Envelope, SecretSource,
    aws::{Access, MAX_GROUP, Naming, Places},
    config::{max_group, service_url, timeout},
    seconds,
};
use serde::Deserialize;
use std::{path::PathBuf, time::Duration};
use url::Url;

/// What every queue takes …
const MAX_BYTES: usize = 256 << 10;
/// … and what SQS takes at most, since 2025.
const MOST_BYTES: usize = 1 << 20;

const NAMING: Naming = Naming {
    key: "queue",
    separator: '/',
    longest: 80,
    example: "its URL, such as https://sqs.eu-central-1.amazonaws.com/123456789012/{topic}",
};

/// What a user declares of an SQS sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The queue's URL. `{topic}`, `{key}` and `{header:NAME}` in its name stand for an item's own. One
    /// whose name ends with `.fifo` is a FIFO queue.
    pub queue: String,
    /// The most bytes in a message, and in a request: up to 1,048,576, by default 262,144.
    pub max_bytes: Option<usize>,
    /// Whose consumers read the messages; by default those that the page of the sink tells of.
    #[serde(default)]
    pub envelope: Envelope,
    /// Where the queue is; by default where its URL says, or else as the AWS SDK finds it.
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
    pub(super) fn queues(&self) -> Result<Places, ConfigError> {
        let queues = Places::parse(&self.queue, NAMING)?;
        let url = service_url("queue", queues.prefix())?;
        if url.query().is_some() {
            return Err(ConfigError::new("queue", "has a `?`: remove what is behind it"));
        }
        Ok(queues)
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

    pub(super) fn max_bytes(&self) -> Result<usize, ConfigError> {
        match self.max_bytes.unwrap_or(MAX_BYTES) {
            bytes @ 1..=MOST_BYTES => Ok(bytes),
            bytes => {
                Err(ConfigError::new("max_bytes", format!("is {bytes}: use 1 to {MOST_BYTES}")))
            }
        }
    }

    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(MAX_GROUP), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }
}

/// The region that a queue's URL names: `sqs.REGION.amazonaws.com`, or `REGION.queue.amazonaws.com` as
/// it was long ago.
pub fn region_of(queue: &str) -> Option<String> {
    let url = Url::parse(queue).ok()?;
    let host = url.host_str()?;
    let amazon = ["amazonaws.com", "amazonaws.com.cn", "api.aws"];
    if !amazon.iter().any(|domain| host.ends_with(&format!(".{domain}"))) {
        return None;
    }
    let labels: Vec<&str> = host.split('.').collect();
    let at = |names: &[&str]| labels.iter().position(|label| names.contains(label));
    let region = match (at(&["sqs", "sqs-fips"]), at(&["queue"])) {
        (Some(service), _) => labels.get(service + 1),
        (None, Some(queue)) => labels.get(queue.checked_sub(1)?),
        (None, None) => None,
    };
    // A region has a number: us-east-1.
    let region = region.filter(|label| label.ends_with(|c: char| c.is_ascii_digit()))?;
    Some((*region).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_region_of_its_queue() {
        let of = |host: &str| region_of(&format!("https://{host}/123/q"));
        assert_eq!(of("sqs.eu-central-1.amazonaws.com").as_deref(), Some("eu-central-1"));
        assert_eq!(of("sqs.cn-north-1.amazonaws.com.cn").as_deref(), Some("cn-north-1"));
        assert_eq!(of("us-west-2.queue.amazonaws.com").as_deref(), Some("us-west-2"));
        assert_eq!(of("vpce-1.sqs.us-east-1.vpce.amazonaws.com").as_deref(), Some("us-east-1"));
        for host in ["queue.amazonaws.com", "127.0.0.1:4566", "sqs.eu-west-1.example.com"] {
            assert_eq!(of(host), None, "{host}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let refused = |text: &str| {
            let config: Config = toml::from_str(text).unwrap();
            let made = super::super::Sqs::new(&config, &|_| None);
            made.unwrap_err().to_string()
        };
        let queue = "queue = 'https://sqs.eu-west-1.amazonaws.com/1/q'";
        assert_eq!(
            refused(&format!("{queue}\nregion = 'us-east-1'")),
            "`region` is us-east-1, but messages go to eu-west-1: remove the key"
        );
        assert_eq!(
            refused(&format!("{queue}\nmax_bytes = 1048577")),
            "`max_bytes` is 1048577: use 1 to 1048576"
        );
        assert_eq!(refused(&format!("{queue}\nmax_group = 11")), "`max_group` is 11: use 1 to 10");
        assert!(refused("queue = 'orders'").starts_with("`queue` is no queue: use its URL"));
        assert!(refused("queue = 'ftp://h/1/q'").contains("use https://"));
        assert!(
            refused(&format!("{queue}\naccess_key_id = 'a'"))
                .contains("`secret_access_key` is missing")
        );
        let inline =
            refused(&format!("{queue}\naccess_key_id = 'a'\nsecret_access_key = 'hunter2'"));
        assert!(inline.contains("{ env = ") && !inline.contains("hunter2"), "{inline}");
        let plain = refused(&format!("{queue}\nendpoint = 'http://sqs.example.com'"));
        assert!(plain.contains("name the host in `allow`"), "{plain}");
        let private = refused(&format!("{queue}\nendpoint = 'https://10.0.0.1'"));
        assert!(private.contains("private address"), "{private}");
    }
}
