//! What a user declares of a NATS sink.

use super::credential::Credential;
use crate::{
    Allowed, ConfigError, Env, SecretSource,
    config::{max_group, timeout},
    seconds,
    server::{Scheme, Server},
};
use serde::Deserialize;
use std::{path::PathBuf, time::Duration};

/// Beyond this, one answer would hold up too much.
const MAX_GROUP: usize = 10_000;

const SCHEME: Scheme = Scheme { plain: "nats", secure: "tls", port: 4222, secure_port: 4222 };

/// What a user declares of a NATS sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// One server or several of a cluster, which are tried in this order: `nats://host:4222`, or
    /// `tls://host:4222`.
    pub url: Urls,
    /// Where messages go. `{topic}` and `{key}` stand for an item's own; by default `{topic}`.
    pub subject: Option<String>,
    /// A token.
    pub token: Option<SecretSource>,
    /// A user, who has a password.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<SecretSource>,
    /// What is in a `.creds` file: a user's JWT and key.
    pub creds: Option<SecretSource>,
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

/// One address or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Urls {
    /// One, or several with commas between them.
    Line(String),
    /// Several.
    List(Vec<String>),
}

impl Config {
    pub(super) fn servers(&self) -> Result<Vec<Server>, ConfigError> {
        let urls: Vec<&str> = match &self.url {
            Urls::Line(line) => line.split(',').collect(),
            Urls::List(list) => list.iter().map(String::as_str).collect(),
        };
        let servers = urls.into_iter().map(|url| {
            let server = Server::parse("url", url, SCHEME)?;
            match server.path {
                None => Ok(server),
                Some(_) => Err(ConfigError::new("url", "has a path: remove it")),
            }
        });
        let servers: Vec<_> = servers.collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(ConfigError::new("url", "is empty: name a server"));
        }
        Ok(servers)
    }

    /// What proves who publishes: at most one thing.
    pub(super) fn credential(&self, env: &Env<'_>) -> Result<Credential, ConfigError> {
        let user = match (&self.user, &self.password) {
            (Some(user), Some(password)) => Some((user, password)),
            (None, None) => None,
            (Some(_), None) => {
                return Err(ConfigError::new("password", "is missing: `user` needs it"));
            }
            (None, Some(_)) => {
                return Err(ConfigError::new("user", "is missing: `password` needs it"));
            }
        };
        match (&self.token, user, &self.creds) {
            (None, None, None) => Ok(Credential::None),
            (Some(token), None, None) => Ok(Credential::Token(token.resolve("token", env)?)),
            (None, Some((user, password)), None) => {
                Ok(Credential::User(user.clone(), password.resolve("password", env)?))
            }
            (None, None, Some(creds)) => {
                Credential::from_creds(&creds.resolve_lines("creds", env)?)
            }
            _ => {
                let problem = "stands beside another credential: there is one, remove the others";
                let key = if self.token.is_some() { "token" } else { "creds" };
                Err(ConfigError::new(key, problem))
            }
        }
    }

    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(1000), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }
}
