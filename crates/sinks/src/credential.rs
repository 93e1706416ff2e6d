//! Secrets: where they come from, and that they show nowhere.

use crate::ConfigError;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

/// Looks up a variable of the environment: only the command line may do that itself.
pub type Env<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A text that shows nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Where a secret comes from: `{ env = "NAME" }` or `{ file = "PATH" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of the environment.
    Env(String),
    /// A file; a line break at its end does not belong to the secret.
    File(PathBuf),
    /// The config holds the secret itself. It is refused when it is resolved, and not kept: an
    /// error while reading the config would show it.
    Inline,
}

impl Secret {
    /// Takes a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for sending it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl SecretSource {
    /// The secret, on one line. `key` names the config's key in errors.
    pub fn resolve(&self, key: &str, env: &Env<'_>) -> Result<Secret, ConfigError> {
        let (text, place) = self.read(key, env)?;
        if text.chars().any(char::is_control) {
            let problem = format!("cannot be sent: remove line breaks and the like from {place}");
            return Err(ConfigError::new(key, problem));
        }
        Ok(Secret(text))
    }

    /// A secret of several lines, such as a key file.
    #[cfg(feature = "nats")]
    pub(crate) fn resolve_lines(&self, key: &str, env: &Env<'_>) -> Result<Secret, ConfigError> {
        self.read(key, env).map(|(text, _)| Secret(text))
    }

    /// The text, and where it is from.
    fn read(&self, key: &str, env: &Env<'_>) -> Result<(String, String), ConfigError> {
        let (text, place) = match self {
            Self::Env(name) => {
                let unset = || ConfigError::new(key, format!("needs the variable {name}: set it"));
                (env(name).ok_or_else(unset)?, format!("the variable {name}"))
            }
            Self::File(path) => (read(key, path)?, format!("the file {}", path.display())),
            Self::Inline => {
                let problem = "holds a secret itself: keep it in the environment or in a file, and \
                               write { env = \"NAME\" } or { file = \"PATH\" }";
                return Err(ConfigError::new(key, problem));
            }
        };
        if text.is_empty() {
            return Err(ConfigError::new(key, format!("is empty: fill {place}")));
        }
        Ok((text, place))
    }
}

fn read(key: &str, path: &Path) -> Result<String, ConfigError> {
    let problem = |error| format!("cannot be read from {}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| ConfigError::new(key, problem(error)))?;
    let end = text.trim_end_matches(['\r', '\n']).len();
    Ok(text[..end].to_owned())
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = SecretSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{ env = \"NAME\" } or { file = \"PATH\" }")
    }

    fn visit_str<E>(self, _: &str) -> Result<SecretSource, E> {
        Ok(SecretSource::Inline)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretSource, A::Error> {
        let source = match map.next_key::<String>()?.as_deref() {
            Some("env") => SecretSource::Env(map.next_value()?),
            Some("file") => SecretSource::File(map.next_value()?),
            Some(other) => return Err(A::Error::unknown_field(other, &["env", "file"])),
            None => return Err(A::Error::custom("expected `env` or `file`")),
        };
        match map.next_key::<String>()? {
            None => Ok(source),
            Some(_) => Err(A::Error::custom("expected one of `env` and `file`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn source(toml: &str) -> SecretSource {
        #[derive(Deserialize)]
        struct Holder {
            it: SecretSource,
        }
        toml::from_str::<Holder>(toml).unwrap().it
    }

    fn problem(source: &SecretSource) -> String {
        source.resolve("bearer", &|_| None).unwrap_err().to_string()
    }

    #[test]
    fn secrets_come_from_variables_and_files() {
        let env = |name: &str| (name == "TOKEN").then(|| "abc".to_owned());
        let found = source("it = { env = \"TOKEN\" }").resolve("bearer", &env).unwrap();
        assert_eq!(found.reveal(), "abc");

        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b" a b \r\n").unwrap();
        let found = SecretSource::File(file.path().into()).resolve("bearer", &env).unwrap();
        assert_eq!(found.reveal(), " a b ");
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = problem(&source("it = { env = \"TOKEN\" }"));
        assert_eq!(missing, "`bearer` needs the variable TOKEN: set it");
        let missing = problem(&source("it = { file = \"/nowhere/token\" }"));
        assert!(missing.starts_with("`bearer` cannot be read from /nowhere/token:"), "{missing}");
    }

    #[test]
    fn a_secret_in_the_config_is_refused_and_not_shown() {
        let inline = source("it = \"hunter2\"");
        assert!(problem(&inline).contains("holds a secret itself"));
        assert!(!format!("{inline:?}").contains("hunter2"));
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        let env = |_: &str| Some("hunter\n2".to_owned());
        let refused = source("it = { env = \"T\" }").resolve("bearer", &env).unwrap_err();
        assert!(!refused.to_string().contains("hunter"), "{refused}");
    }

    #[test]
    fn other_forms_are_refused() {
        #[derive(Debug, Deserialize)]
        struct Holder {
            #[allow(dead_code)]
            it: SecretSource,
        }
        for text in ["it = {}", "it = { vault = \"x\" }", "it = { env = \"A\", file = \"B\" }"] {
            let error = toml::from_str::<Holder>(text).unwrap_err().to_string();
            assert!(error.contains("`env`"), "{error}");
        }
    }
}
