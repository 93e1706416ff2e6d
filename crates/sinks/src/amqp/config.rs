//! What a user declares of a RabbitMQ sink.

use super::connection::Credential;
use crate::{
    Allowed, ConfigError, Env, Envelope, Secret, SecretSource,
    config::{max_group, timeout},
    seconds,
    server::{Scheme, Server},
};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use std::{path::PathBuf, time::Duration};

/// Beyond this, one answer would hold up too much.
const MAX_GROUP: usize = 10_000;

const SCHEME: Scheme = Scheme { plain: "amqp", secure: "amqps", port: 5672, secure_port: 5671 };

/// What a RabbitMQ has that nobody has set up. It takes it from its own machine only.
const GUEST: &str = "guest";

/// What a user declares of a RabbitMQ sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server and the virtual host: `amqp://host:5672/vhost`, or `amqps://…`.
    pub url: String,
    /// Who publishes; by default `guest`.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<SecretSource>,
    /// Where messages go; by default the default exchange, which has a queue for each routing key.
    #[serde(default)]
    pub exchange: String,
    /// `{topic}` and `{key}` stand for an item's own; by default `{topic}`.
    pub routing_key: Option<String>,
    /// Whose consumers read the messages.
    #[serde(default)]
    pub envelope: Envelope,
    /// Whether queues are declared. By default they must be there.
    pub declare: Option<Declare>,
    /// Most items in a group: 1 to 10,000, by default 1,000.
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

/// What queues are declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Declare {
    /// Durable quorum queues, one for each routing key.
    Quorum,
}

impl Config {
    /// Where it is, and the virtual host there.
    pub(super) fn server(&self) -> Result<(Server, String), ConfigError> {
        let server = Server::parse("url", &self.url, SCHEME)?;
        let vhost = match server.path.as_deref() {
            None => "/".to_owned(),
            Some(path) => {
                let decoded = percent_decode_str(path).decode_utf8();
                let refused = |_| ConfigError::new("url", "has a virtual host that is no text");
                decoded.map_err(refused)?.into_owned()
            }
        };
        Ok((server, vhost))
    }

    pub(super) fn credential(&self, env: &Env<'_>) -> Result<Credential, ConfigError> {
        let (user, password) = match (&self.user, &self.password) {
            (None, None) => (GUEST.to_owned(), Secret::new(GUEST)),
            (Some(user), Some(password)) => (user.clone(), password.resolve("password", env)?),
            (Some(_), None) => {
                return Err(ConfigError::new("password", "is missing: `user` needs it"));
            }
            (None, Some(_)) => {
                return Err(ConfigError::new("user", "is missing: `password` needs it"));
            }
        };
        if user.chars().any(char::is_control) {
            return Err(ConfigError::new(
                "user",
                "cannot be sent: remove line breaks and the like",
            ));
        }
        Ok(Credential { user, password })
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

    fn server(url: &str) -> (String, String) {
        let config: Config = toml::from_str(&format!("url = '{url}'")).unwrap();
        let (server, vhost) = config.server().unwrap();
        (server.to_string(), vhost)
    }

    #[test]
    fn an_address_may_name_a_virtual_host() {
        assert_eq!(server("amqp://h"), ("h:5672".into(), "/".into()));
        assert_eq!(server("amqps://h/"), ("h:5671".into(), "/".into()));
        assert_eq!(server("amqp://h:1/team%2Fa"), ("h:1".into(), "team/a".into()));
    }

    #[test]
    fn user_and_password_come_together() {
        let env = |_: &str| Some("word".to_owned());
        let of = |rest: &str| {
            let config: Config = toml::from_str(&format!("url = 'amqp://h'\n{rest}")).unwrap();
            config.credential(&env).map(|it| it.user).map_err(|error| error.to_string())
        };
        assert_eq!(of(""), Ok("guest".to_owned()));
        assert_eq!(of("user = 'a'\npassword = { env = 'P' }"), Ok("a".to_owned()));
        assert_eq!(of("user = 'a'").unwrap_err(), "`password` is missing: `user` needs it");
        assert!(of("password = { env = 'P' }").unwrap_err().contains("`user` is missing"));
        assert!(of("user = 'a'\npassword = 'x'").unwrap_err().contains("holds a secret itself"));
    }
}
