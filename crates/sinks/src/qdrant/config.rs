//! What a user declares of a Qdrant sink.

use crate::{
    Allowed, ConfigError, Env, SecretSource,
    config::{max_group, service_url, timeout},
    pattern::Pattern,
    seconds,
};
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};
use url::Url;

/// Beyond this, one answer would hold up too much.
const MAX_GROUP: usize = 10_000;

/// So that points with 3,072 numbers stay below the 32 MB that Qdrant takes by default.
const USUAL_GROUP: usize = 256;

/// Where Qdrant itself keeps a point's id.
pub(super) const ID_FIELD: &str = "id";

/// The longest vector that Qdrant takes.
const MAX_SIZE: u32 = 65_536;

/// What a user declares of a Qdrant sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where Qdrant's REST API is, such as `https://qdrant.example.com:6333`.
    pub url: String,
    /// The collection; by default `{topic}`. `{key}` and `{header:NAME}` are known as well.
    #[serde(default = "topic")]
    pub collection: String,
    /// Sent as `api-key`.
    pub api_key: Option<SecretSource>,
    /// The field that holds the vector, or vectors by name; by default `vector`.
    #[serde(default = "vector")]
    pub vector_field: String,
    /// The field that holds the point's payload. Without one, all fields but the vector and the id
    /// are the payload.
    pub payload_field: Option<String>,
    /// The field that holds the point's id; by default `id`.
    #[serde(default = "id")]
    pub id_field: String,
    /// Makes collections that do not exist.
    pub create: Option<Create>,
    /// Most points in a request: 1 to 10,000, by default 256.
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

/// A collection to be made: one vector per point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// How many numbers a vector has.
    pub size: u32,
    /// How vectors are compared; by default `Cosine`.
    #[serde(default)]
    pub distance: Distance,
}

/// How vectors are compared, in Qdrant's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Distance {
    /// The angle between them.
    #[default]
    Cosine,
    /// The length of the line between them.
    Euclid,
    /// Their product.
    Dot,
    /// The sum of the differences.
    Manhattan,
}

fn topic() -> String {
    "{topic}".to_owned()
}

fn vector() -> String {
    "vector".to_owned()
}

fn id() -> String {
    ID_FIELD.to_owned()
}

impl Config {
    /// Whether the names of fields and the collection to be made are in order.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let payload = self.payload_field.as_deref();
        let fields = [
            ("vector_field", Some(self.vector_field.as_str())),
            ("id_field", Some(self.id_field.as_str())),
            ("payload_field", payload),
        ];
        for (at, (key, name)) in fields.iter().enumerate() {
            if *name == Some("") {
                return Err(ConfigError::new(*key, "is empty: name a field, or remove it"));
            }
            if let Some((other, _)) = fields[..at].iter().find(|(_, it)| it == name) {
                let problem = format!("names the same field as `{other}`: a field has one use");
                return Err(ConfigError::new(*key, problem));
            }
        }
        match self.create {
            Some(Create { size, .. }) if !(1..=MAX_SIZE).contains(&size) => {
                let problem = format!("is {size}: use 1 to {MAX_SIZE}");
                Err(ConfigError::new("create.size", problem))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn collection(&self) -> Result<Pattern, ConfigError> {
        Pattern::parse("collection", &self.collection)
    }

    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(USUAL_GROUP), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }

    /// Where Qdrant is; a path before its own is kept, for those behind a proxy.
    pub(super) fn url(&self) -> Result<Url, ConfigError> {
        let url = service_url("url", &self.url)?;
        if url.query().is_some() {
            let problem = "has a `?`: use Qdrant's address only, such as https://host:6333";
            return Err(ConfigError::new("url", problem));
        }
        Ok(url)
    }

    /// The key as the value of its header.
    pub(super) fn api_key(&self, env: &Env<'_>) -> Result<Option<HeaderValue>, ConfigError> {
        let Some(source) = &self.api_key else { return Ok(None) };
        let secret = source.resolve("api_key", env)?;
        let mut value = HeaderValue::from_str(secret.reveal()).map_err(|_| {
            ConfigError::new("api_key", "cannot be sent: remove line breaks and the like")
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(rest: &str) -> Config {
        toml::from_str(&format!("url = 'https://qdrant.example.com:6333'\n{rest}")).unwrap()
    }

    #[test]
    fn defaults_are_qdrants_own_names() {
        let config = config("create = { size = 384 }");
        assert_eq!(config.check(), Ok(()));
        assert_eq!((config.vector_field.as_str(), config.id_field.as_str()), ("vector", "id"));
        assert_eq!(config.collection, "{topic}");
        assert_eq!(config.create.unwrap().distance, Distance::Cosine);
        assert_eq!(config.max_group(), Ok(256));
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        let refused = |rest: &str| config(rest).check().unwrap_err().to_string();
        assert_eq!(refused("create = { size = 0 }"), "`create.size` is 0: use 1 to 65536");
        assert!(refused("vector_field = ''").starts_with("`vector_field` is empty"));
        let same = refused("payload_field = 'vector'");
        assert!(same.starts_with("`payload_field` names the same field as `vector_field`"));
        let query = Config { url: "https://h/?a=b".to_owned(), ..config("") };
        assert!(query.url().unwrap_err().to_string().contains("`?`"));
        assert!(toml::from_str::<Config>("url = 'https://h'\nwait = false").is_err());
    }
}
