//! What is wrong with a config, and the checks that all sinks share.

use std::{collections::HashSet, time::Duration};
use tidegate_core::sink::SinkError;
use url::Url;

/// A request may take this long at most, whatever is declared: a lease must outlive it.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// A key of a config has a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {problem}")]
pub struct ConfigError {
    key: String,
    problem: String,
}

impl ConfigError {
    /// `problem` says what is wrong with `key`, and what to do.
    pub(crate) fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }

    /// The key, such as `users.app.client_secret`.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl From<ConfigError> for SinkError {
    fn from(error: ConfigError) -> Self {
        Self(error.to_string())
    }
}

/// The address of a service, without anything in it that does not belong there.
pub(crate) fn service_url(key: &str, text: &str) -> Result<Url, ConfigError> {
    // The text itself stays out of messages: it may hold a password.
    let url = Url::parse(text).map_err(|error| {
        ConfigError::new(key, format!("is no address ({error}): use https://host/path"))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        let problem = format!("begins with `{}:`: use https:// or http://", url.scheme());
        return Err(ConfigError::new(key, problem));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let problem = "holds a user or a password: remove them and use basic credentials";
        return Err(ConfigError::new(key, problem));
    }
    if url.fragment().is_some() {
        return Err(ConfigError::new(key, "has a `#`, which is never sent: remove it"));
    }
    Ok(url)
}

/// Where messages go if nothing is declared.
pub(crate) const TO_TOPIC: &str = "{topic}";

/// How many items a request may carry.
pub(crate) fn max_group(declared: usize, most: usize) -> Result<usize, ConfigError> {
    if (1..=most).contains(&declared) {
        return Ok(declared);
    }
    Err(ConfigError::new("max_group", format!("is {declared}: use 1 to {most}")))
}

/// How long a request may take.
pub(crate) fn timeout(declared: Duration) -> Result<Duration, ConfigError> {
    if !declared.is_zero() && declared <= MAX_TIMEOUT {
        return Ok(declared);
    }
    let (is, most) = (declared.as_secs_f64(), MAX_TIMEOUT.as_secs());
    Err(ConfigError::new("timeout", format!("is {is} s: use more than 0 and at most {most}")))
}

/// Names are told apart in reports and by the pacer.
pub(crate) fn distinct<'a>(
    key: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), ConfigError> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(ConfigError::new(key, "have one without a name: give each a `name`"));
        }
        if !seen.insert(name) {
            return Err(ConfigError::new(key, format!("have two named `{name}`: rename one")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_a_web_service_and_holds_no_secret() {
        let refused = |text: &str| service_url("url", text).unwrap_err().to_string();
        assert!(refused("https://me:hunter2@example.com/").contains("use basic credentials"));
        assert!(!refused("https://me:hunter2@example.com/").contains("hunter2"));
        assert_eq!(
            refused("ftp://example.com"),
            "`url` begins with `ftp:`: use https:// or http://"
        );
        assert!(refused("example.com/x").starts_with("`url` is no address"));
        assert!(refused("https://example.com/#top").contains("remove it"));
        assert!(service_url("url", "https://example.com").is_ok());
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_its_range() {
        let text = |error: ConfigError| error.to_string();
        assert_eq!(text(max_group(0, 10).unwrap_err()), "`max_group` is 0: use 1 to 10");
        assert_eq!(
            text(timeout(Duration::ZERO).unwrap_err()),
            "`timeout` is 0 s: use more than 0 and at most 3600"
        );
        assert_eq!(
            text(distinct("users", ["a", "a"].into_iter()).unwrap_err()),
            "`users` have two named `a`: rename one"
        );
    }
}
