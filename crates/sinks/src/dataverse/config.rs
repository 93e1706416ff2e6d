//! What a user declares of a Dataverse sink.

use crate::{
    Allowed, ConfigError, SecretSource,
    config::{distinct, max_group, service_url, timeout},
    seconds,
};
use serde::Deserialize;
use std::{path::PathBuf, time::Duration};
use url::Url;

/// What `$batch` takes, and where Microsoft suggests to begin with bulk messages.
const MAX_GROUP: usize = 1000;

/// What a user declares of a Dataverse sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The environment, such as `https://org.crm.dynamics.com`.
    pub url: String,
    /// The entity set, such as `accounts`.
    pub table: String,
    /// The table's logical name, such as `account`.
    pub entity: String,
    /// What to do with the records.
    pub operation: Operation,
    /// What identifies a record: a name is the primary key, which is in the records; a list of
    /// names is an alternate key. Needed but for `create`.
    pub key: Option<Key>,
    /// The directory that the users are in: its id or its domain.
    pub tenant: String,
    /// The application users. Each has service protection limits of its own.
    pub users: Vec<User>,
    /// Where tokens come from; by default Microsoft's identity platform.
    pub token_url: Option<String>,
    /// Whether the table is elastic.
    #[serde(default)]
    pub elastic: bool,
    /// Most records in a request: 1 to 1,000, by default 100.
    pub max_group: Option<usize>,
    /// How long a request may take; by default 60 s.
    #[serde(default = "seconds::a_minute", deserialize_with = "seconds::deserialize")]
    pub timeout: Duration,
    /// Certificates to trust beside the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Where it may connect to although that is no public address.
    #[serde(default)]
    pub allow: Vec<Allowed>,
}

/// What to do with the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// New records. Dataverse does not recognize one that comes again after a lost answer: prefer
    /// `upsert`.
    Create,
    /// Records that exist.
    Update,
    /// Either.
    Upsert,
    /// Removes records. One that is not there is done.
    Delete,
}

/// What identifies a record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Key {
    /// The column of the primary key, such as `accountid`.
    Primary(String),
    /// The columns of an alternate key.
    Alternate(Vec<String>),
}

/// An application user.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// What it is called in reports.
    pub name: String,
    /// The application's id.
    pub client_id: String,
    /// The application's secret.
    pub client_secret: SecretSource,
}

impl Operation {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Upsert => "upsert",
            Self::Delete => "delete",
        }
    }
}

impl Config {
    /// Whether all that needs no secret is in order.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        column("table", &self.table)?;
        column("entity", &self.entity)?;
        self.check_key()?;
        if self.users.is_empty() {
            return Err(ConfigError::new("users", "are missing: declare an application user"));
        }
        distinct("users", self.users.iter().map(|user| user.name.as_str()))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if self.tenant.is_empty() || !self.tenant.chars().all(plain) {
            let problem = "names no directory: use its id or its domain";
            return Err(ConfigError::new("tenant", problem));
        }
        Ok(())
    }

    fn check_key(&self) -> Result<(), ConfigError> {
        let refused = |problem| Err(ConfigError::new("key", problem));
        match (self.operation, &self.key) {
            (Operation::Create, None) => Ok(()),
            (Operation::Create, Some(_)) => refused("means nothing to `create`: remove it"),
            (_, None) => refused("is missing: name the column that identifies a record"),
            (_, Some(Key::Primary(name))) => column("key", name),
            (Operation::Update, Some(Key::Alternate(_))) => {
                refused("is a list, but `update` needs the primary key: name one column, or upsert")
            }
            (Operation::Delete, Some(Key::Alternate(_))) if self.elastic => {
                refused("is a list, but elastic tables delete by the primary key: name one column")
            }
            (_, Some(Key::Alternate(names))) if names.is_empty() => refused("is empty"),
            (_, Some(Key::Alternate(names))) => {
                names.iter().try_for_each(|name| column("key", name))
            }
        }
    }

    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        max_group(self.max_group.unwrap_or(100), MAX_GROUP)
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }

    /// The environment's address, without a path.
    pub(super) fn url(&self) -> Result<Url, ConfigError> {
        let url = service_url("url", &self.url)?;
        if url.path() != "/" || url.query().is_some() {
            let problem = "has a path: use the environment's address only, such as \
                           https://org.crm.dynamics.com";
            return Err(ConfigError::new("url", problem));
        }
        Ok(url)
    }

    /// Where tokens come from.
    pub(super) fn token_url(&self) -> Result<Url, ConfigError> {
        let default =
            || format!("https://login.microsoftonline.com/{}/oauth2/v2.0/token", self.tenant);
        service_url("token_url", &self.token_url.clone().unwrap_or_else(default))
    }
}

/// Names of tables and columns become part of addresses.
fn column(key: &str, name: &str) -> Result<(), ConfigError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(());
    }
    let problem =
        format!("is `{name}`: use the name as Dataverse has it, of letters, digits and `_`");
    Err(ConfigError::new(key, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(rest: &str) -> Config {
        let base = "url = 'https://org.crm.dynamics.com'\ntable = 'accounts'\nentity = 'account'\n\
                    tenant = 'contoso.com'\n\
                    users = [{ name = 'a', client_id = 'x', client_secret = { env = 'S' } }]\n";
        toml::from_str(&format!("{base}{rest}")).unwrap()
    }

    fn refused(rest: &str) -> String {
        config(rest).check().unwrap_err().to_string()
    }

    #[test]
    fn keys_fit_their_operation() {
        for rest in [
            "operation = 'create'",
            "operation = 'update'\nkey = 'accountid'",
            "operation = 'upsert'\nkey = ['name', 'city']",
            "operation = 'upsert'\nkey = 'accountid'",
            "operation = 'delete'\nkey = ['name']",
        ] {
            assert_eq!(config(rest).check(), Ok(()), "{rest}");
        }
        assert!(refused("operation = 'create'\nkey = 'x'").contains("remove it"));
        assert!(refused("operation = 'update'").contains("is missing"));
        assert!(refused("operation = 'update'\nkey = ['x']").contains("primary key"));
        assert!(refused("operation = 'upsert'\nkey = []").contains("is empty"));
        assert!(refused("operation = 'upsert'\nkey = ['a)']").contains("letters, digits"));
        let elastic = "operation = 'delete'\nelastic = true\nkey = ['x']";
        assert!(refused(elastic).contains("elastic"));
    }

    #[test]
    fn defaults_are_microsofts() {
        let config = config("operation = 'create'");
        assert_eq!(config.max_group(), Ok(100));
        let url = "https://login.microsoftonline.com/contoso.com/oauth2/v2.0/token";
        assert_eq!(config.token_url().unwrap().as_str(), url);
        let path = Config { url: "https://org.crm.dynamics.com/api".to_owned(), ..config.clone() };
        assert!(path.url().unwrap_err().to_string().contains("has a path"));
        let tenant = Config { tenant: "a/b".to_owned(), ..config.clone() };
        assert!(tenant.check().unwrap_err().to_string().contains("`tenant`"));
        let nobody = Config { users: Vec::new(), ..config.clone() };
        assert!(nobody.check().unwrap_err().to_string().contains("`users`"));
        let many = Config { max_group: Some(1001), ..config };
        assert_eq!(many.max_group().unwrap_err().to_string(), "`max_group` is 1001: use 1 to 1000");
    }
}
