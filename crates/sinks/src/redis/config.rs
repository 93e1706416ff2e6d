//! What a user declares of a Redis sink.

use crate::{
    Allowed, ConfigError, Env, Envelope, SecretSource,
    config::{max_group, timeout},
    seconds,
    server::{Scheme, Server},
};
use ::redis::RedisConnectionInfo;
use serde::Deserialize;
use std::{num::NonZeroU64, path::PathBuf, time::Duration};

/// Beyond this, one answer would hold up too much.
const MAX_GROUP: usize = 10_000;

const SCHEME: Scheme = Scheme { plain: "redis", secure: "rediss", port: 6379, secure_port: 6379 };

/// What a user declares of a Redis sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server and the database: `redis://host:6379/0`, or `rediss://…`.
    pub url: String,
    /// Who writes; by default Redis's default user.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<SecretSource>,
    /// Where messages go. `{topic}` and `{key}` stand for an item's own; by default `{topic}`.
    pub stream: Option<String>,
    /// Keeps about so many entries in a stream and loses the oldest, read or not. By default all
    /// are kept.
    pub maxlen: Option<NonZeroU64>,
    /// Whose consumers read the messages. Those of Brighter read lists, and no streams.
    #[serde(default)]
    pub envelope: Envelope,
    /// How many seconds a message is kept that nobody has read; with Brighter's envelope. By default for ever.
    pub ttl: Option<NonZeroU64>,
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

impl Config {
    /// Where it is, the database there, and who asks for it.
    pub(super) fn server(
        &self,
        env: &Env<'_>,
    ) -> Result<(Server, RedisConnectionInfo), ConfigError> {
        let server = Server::parse("url", &self.url, SCHEME)?;
        let mut info = RedisConnectionInfo::default()
            .set_db(database(server.path.as_deref())?)
            .set_skip_set_lib_name();
        if let Some(password) = &self.password {
            info = info.set_password(password.resolve("password", env)?.reveal());
        }
        if let Some(user) = &self.user {
            if self.password.is_none() {
                return Err(ConfigError::new("password", "is missing: `user` needs it"));
            }
            info = info.set_username(user);
        }
        Ok((server, info))
    }

    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(1000), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }
}

fn database(path: Option<&str>) -> Result<i64, ConfigError> {
    let number = path.unwrap_or("0").parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| {
        ConfigError::new("url", "names no database behind the host: use its number, such as /0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(rest: &str) -> Result<RedisConnectionInfo, String> {
        let config: Config = toml::from_str(rest).map_err(|error| error.to_string())?;
        let env = |_: &str| Some("hunter2".to_owned());
        config.server(&env).map(|(_, info)| info).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_may_name_a_database() {
        assert_eq!(info("url = 'redis://h'").unwrap().db(), 0);
        assert_eq!(info("url = 'rediss://h:1/7'").unwrap().db(), 7);
        assert!(info("url = 'redis://h/x'").unwrap_err().contains("use its number"));
        assert!(info("url = 'redis://h/-1'").unwrap_err().contains("use its number"));
    }

    #[test]
    fn a_password_needs_no_user_but_a_user_needs_a_password() {
        let password = "url = 'redis://h'\npassword = { env = 'P' }";
        assert_eq!(info(password).unwrap().password(), Some("hunter2"));
        let error = info("url = 'redis://h'\nuser = 'a'").unwrap_err();
        assert_eq!(error, "`password` is missing: `user` needs it");
        assert!(info("url = 'redis://h'\nmaxlen = 0").is_err());
    }
}
