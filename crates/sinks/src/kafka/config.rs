//! What a user declares of a Kafka sink.

use crate::{
    ConfigError, Env, Envelope, SecretSource,
    config::{max_group, timeout},
    pattern::Pattern,
    seconds,
};
use rdkafka::ClientConfig;
use serde::Deserialize;
use std::{collections::BTreeMap, time::Duration};

/// Beyond this, one call would hold up too much.
const MAX_GROUP: usize = 10_000;

/// For so long a topic may be unknown while brokers tell each other of it.
const PROPAGATION: Duration = Duration::from_secs(5);

/// Settings that would break what is promised, or are declared elsewhere, and why they are refused.
const REFUSED: [(&str, &str); 11] = [
    ("acks", "is always `all`: with less, what is done can be lost"),
    ("request.required.acks", "is always `all`: with less, what is done can be lost"),
    ("enable.idempotence", "is always on: without it, messages are doubled and get out of order"),
    ("transactional.id", "would make transactions that nobody ends"),
    ("delivery.report.only.error", "is always off: without reports, nothing is ever done"),
    ("bootstrap.servers", "is declared as `brokers`"),
    ("metadata.broker.list", "is declared as `brokers`"),
    ("message.timeout.ms", "follows from `timeout`"),
    ("delivery.timeout.ms", "follows from `timeout`"),
    ("topic.metadata.propagation.max.ms", "follows from `timeout`"),
    ("statistics.interval.ms", "has no use: nobody reads the statistics"),
];

/// What a user declares of a Kafka sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where to begin to look for brokers: `host:port` each.
    pub brokers: Vec<String>,
    /// The topic; by default `{topic}`. `{key}` and `{header:NAME}` are known as well.
    #[serde(default = "topic")]
    pub topic: String,
    /// Whose consumers read the records.
    #[serde(default)]
    pub envelope: Envelope,
    /// Most messages in a call: 1 to 10,000, by default 500.
    pub max_group: Option<usize>,
    /// How long a call may take; by default 60 s. A message has half of it.
    #[serde(default = "seconds::a_minute", deserialize_with = "seconds::deserialize")]
    pub timeout: Duration,
    /// Whatever else librdkafka knows, by its own names. A value that is a secret is `{ env =
    /// "NAME" }` or `{ file = "PATH" }`.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
}

/// A value of librdkafka's config.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// As it stands.
    Text(String),
    /// From elsewhere.
    Secret(SecretSource),
}

fn topic() -> String {
    "{topic}".to_owned()
}

impl Config {
    pub(super) fn topic(&self) -> Result<Pattern, ConfigError> {
        Pattern::parse("topic", &self.topic)
    }

    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(500), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }

    /// What librdkafka is told. What a user sets goes before the defaults, and never before what is
    /// promised.
    pub(super) fn client(&self, env: &Env<'_>) -> Result<ClientConfig, ConfigError> {
        let message_timeout = self.timeout()? / 2;
        let mut client = ClientConfig::new();
        client.set("client.id", "tidegate");
        // As the others choose the partition who write these records, so that a key is in one for all: clients
        // of Java, or Brighter's producers.
        client.set(
            "partitioner",
            match self.envelope {
                Envelope::Tidegate => "murmur2_random",
                Envelope::Brighter => "consistent_random",
            },
        );
        for (name, setting) in &self.settings {
            client.set(name, setting.value(name, env)?);
        }
        client
            .set("bootstrap.servers", self.brokers()?)
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("message.timeout.ms", millis(message_timeout))
            .set("topic.metadata.propagation.max.ms", millis(PROPAGATION.min(message_timeout / 2)));
        Ok(client)
    }

    fn brokers(&self) -> Result<String, ConfigError> {
        let plain = |it: &String| !it.is_empty() && !it.contains([',', '@', ' ']);
        if self.brokers.is_empty() || !self.brokers.iter().all(plain) {
            let problem = "are no list of addresses: use [\"host:9092\"]";
            return Err(ConfigError::new("brokers", problem));
        }
        Ok(self.brokers.join(","))
    }
}

impl Setting {
    fn value(&self, name: &str, env: &Env<'_>) -> Result<String, ConfigError> {
        let key = format!("settings.{name}");
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(ConfigError::new(key, format!("{why}: remove it")));
        }
        if self.needs_tls(name) {
            let problem = "needs TLS, which this librdkafka is built without: let a proxy beside \
                           Tidegate speak it, and use plaintext or sasl_plaintext";
            return Err(ConfigError::new(key, problem));
        }
        match self {
            Self::Flag(flag) => Ok(flag.to_string()),
            Self::Number(number) => Ok(number.to_string()),
            Self::Text(text) if !is_secret(name) => Ok(text.clone()),
            Self::Text(_) => reveal(&SecretSource::Inline, &key, env),
            Self::Secret(source) => reveal(source, &key, env),
        }
    }

    fn needs_tls(&self, name: &str) -> bool {
        let is_ssl = |text: &str| text.to_ascii_lowercase().ends_with("ssl");
        let protocol = matches!(self, Self::Text(text) if is_ssl(text));
        name.starts_with("ssl.") || (name == "security.protocol" && protocol)
    }
}

fn reveal(source: &SecretSource, key: &str, env: &Env<'_>) -> Result<String, ConfigError> {
    Ok(source.resolve(key, env)?.reveal().to_owned())
}

fn millis(time: Duration) -> String {
    time.as_millis().max(1).to_string()
}

/// Settings that hold secrets, by their names.
fn is_secret(name: &str) -> bool {
    ["password", "secret", "sasl.oauthbearer.config", "key.pem"].iter().any(|it| name.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(rest: &str) -> Result<ClientConfig, String> {
        let config: Config =
            toml::from_str(&format!("brokers = ['a:9092', 'b:9092']\n{rest}")).unwrap();
        let env = |name: &str| (name == "WORD").then(|| "hunter2".to_owned());
        config.client(&env).map_err(|error| error.to_string())
    }

    #[test]
    fn the_promises_come_last() {
        let client = client("timeout = 4\nsettings = { 'linger.ms' = 1, partitioner = 'random' }");
        let client = client.unwrap();
        let get = |name: &str| client.get(name).unwrap().to_owned();
        assert_eq!(get("bootstrap.servers"), "a:9092,b:9092");
        assert_eq!((get("acks"), get("enable.idempotence")), ("all".into(), "true".into()));
        assert_eq!(get("message.timeout.ms"), "2000");
        assert_eq!(get("topic.metadata.propagation.max.ms"), "1000");
        assert_eq!((get("linger.ms"), get("partitioner")), ("1".into(), "random".into()));
    }

    #[test]
    fn partitions_are_chosen_as_others_choose_them() {
        let partitioner = |rest: &str| client(rest).unwrap().get("partitioner").unwrap().to_owned();
        assert_eq!(partitioner(""), "murmur2_random");
        assert_eq!(partitioner("envelope = 'brighter'"), "consistent_random");
        let own = "envelope = 'brighter'\nsettings = { partitioner = 'murmur2' }";
        assert_eq!(partitioner(own), "murmur2");
    }

    #[test]
    fn settings_that_break_the_promises_are_refused_with_the_reason() {
        for (name, why) in REFUSED {
            let error = client(&format!("settings = {{ '{name}' = 1 }}")).unwrap_err();
            assert_eq!(error, format!("`settings.{name}` {why}: remove it"));
        }
        assert!(
            client("settings = { 'sasl.password' = 'hunter2' }")
                .unwrap_err()
                .starts_with("`settings.sasl.password` holds a secret itself")
        );
        let secret = client("settings = { 'sasl.password' = { env = 'WORD' } }").unwrap();
        assert_eq!(secret.get("sasl.password"), Some("hunter2"));
    }

    #[test]
    fn what_needs_tls_is_refused_with_the_reason() {
        for setting in ["'security.protocol' = 'SASL_SSL'", "'ssl.ca.location' = '/ca.pem'"] {
            let error = client(&format!("settings = {{ {setting} }}")).unwrap_err();
            assert!(error.contains("needs TLS"), "{error}");
        }
        assert!(client("settings = { 'security.protocol' = 'sasl_plaintext' }").is_ok());
    }

    #[test]
    fn brokers_are_addresses() {
        for brokers in ["[]", "['']", "['a:1,b:2']", "['me:word@a:1']"] {
            let config: Config = toml::from_str(&format!("brokers = {brokers}")).unwrap();
            let error = config.client(&|_| None).unwrap_err().to_string();
            assert!(error.starts_with("`brokers` are no list"), "{error}");
            assert!(!error.contains("word"), "{error}");
        }
    }
}
