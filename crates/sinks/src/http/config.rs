//! What a user declares of an HTTP sink.

use super::signing::Signer;
use crate::{
    Allowed, ConfigError, Env, Secret, SecretSource,
    config::{distinct, max_group, timeout},
    seconds,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// Beyond this, one answer would hold up too much.
const MAX_GROUP: usize = 10_000;

/// Headers that follow from the request itself.
pub(super) const OWN_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What a user declares of an HTTP sink. Durations are numbers of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where requests go. In the path and the query, `{id}` stands for the item's stable id and, with
    /// `body = "item"`, `{field}` for a field of the record; with the bodies that are messages,
    /// `{topic}` and `{key}` stand for those of the message.
    pub url: String,
    /// How.
    #[serde(default)]
    pub method: Method,
    /// Sent with each request. A value that is a secret is `{ env = "NAME" }` or `{ file = "PATH"
    /// }`.
    #[serde(default)]
    pub headers: BTreeMap<String, HeaderText>,
    /// What is in a request.
    #[serde(default)]
    pub body: Body,
    /// Most items in a request: 1 to 10,000 with `"ndjson"` and `"array"`, by default 100; else 1.
    pub max_group: Option<usize>,
    /// The header that carries the item's stable id if there is one item in a request: by default
    /// `Idempotency-Key`; empty for none.
    pub id_header: Option<String>,
    /// Puts the item's stable id into each record under this name, unless the record has it.
    pub id_field: Option<String>,
    /// A token, sent as `Authorization: Bearer …`.
    pub bearer: Option<SecretSource>,
    /// A user and a password.
    pub basic: Option<Basic>,
    /// Several credentials that the service limits each by itself. By default one, `main`, with
    /// `bearer` or `basic`.
    #[serde(default)]
    pub connections: Vec<Connection>,
    /// How long a request may take; by default 60 s.
    #[serde(default = "seconds::a_minute", deserialize_with = "seconds::deserialize")]
    pub timeout: Duration,
    /// Certificates to trust beside the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Where it may connect to although that is no public address.
    #[serde(default)]
    pub allow: Vec<Allowed>,
    /// A path of the service that answers GET with success if all is well, such as `/health`.
    pub check: Option<String>,
    /// What the requests are to the pacer: by default the method in lower case.
    pub operation: Option<String>,
    /// Signs each message after Standard Webhooks: secrets in base64, with spaces between them.
    pub signing: Option<SecretSource>,
    /// Where CloudEvents come from, unless they say it themselves; by default `tidegate`.
    pub source: Option<String>,
}

/// How requests are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// The default.
    #[default]
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes. With `body = "item"` it has no body: the address says what.
    Delete,
}

/// What is in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// One record.
    #[default]
    Item,
    /// A line per record.
    Ndjson,
    /// A JSON array of records.
    Array,
    /// One message as it is: its payload, and its headers as headers.
    Message,
    /// One message as a CloudEvent in JSON.
    CloudEvents,
    /// One message as it is, with the attributes of a CloudEvent as headers.
    #[serde(rename = "cloudevents-binary")]
    CloudEventsBinary,
}

/// The value of a header.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum HeaderText {
    /// As it stands.
    Plain(String),
    /// From elsewhere.
    Secret(SecretSource),
}

/// A user and a password.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basic {
    /// Who.
    pub user: String,
    /// The proof.
    pub password: SecretSource,
}

/// A credential that the service limits by itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// What it is called in reports.
    pub name: String,
    /// A token.
    pub bearer: Option<SecretSource>,
    /// A user and a password.
    pub basic: Option<Basic>,
}

/// What proves who sends.
#[derive(Clone, Debug)]
pub enum Credential {
    /// Nothing.
    None,
    /// A token.
    Bearer(Secret),
    /// A user and a password.
    Basic(String, Secret),
}

impl Body {
    /// Whether a request carries one item.
    pub fn is_single(self) -> bool {
        !matches!(self, Self::Ndjson | Self::Array)
    }

    /// Whether items are messages, and not records.
    pub fn is_message(self) -> bool {
        matches!(self, Self::Message | Self::CloudEvents | Self::CloudEventsBinary)
    }

    /// Whether items become CloudEvents.
    pub fn is_event(self) -> bool {
        matches!(self, Self::CloudEvents | Self::CloudEventsBinary)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Ndjson => "ndjson",
            Self::Array => "array",
            Self::Message => "message",
            Self::CloudEvents => "cloudevents",
            Self::CloudEventsBinary => "cloudevents-binary",
        }
    }
}

impl Config {
    /// Most items in a request.
    pub(super) fn max_group(&self) -> Result<usize, ConfigError> {
        match (self.body.is_single(), self.max_group) {
            (true, None | Some(1)) => Ok(1),
            (true, Some(declared)) => {
                let problem = format!(
                    "is {declared}, but with `body` = \"{}\" there is one request per item: \
                     remove it, or use \"ndjson\" or \"array\"",
                    self.body.name()
                );
                Err(ConfigError::new("max_group", problem))
            }
            (false, declared) => max_group(declared.unwrap_or(100), MAX_GROUP),
        }
    }

    pub(super) fn timeout(&self) -> Result<Duration, ConfigError> {
        timeout(self.timeout)
    }

    /// The header that carries an item's id.
    pub(super) fn id_header(&self) -> Result<Option<HeaderName>, ConfigError> {
        let name = match (&self.id_header, self.body.is_single()) {
            (None, true) => "idempotency-key",
            (None, false) => return Ok(None),
            (Some(name), _) if name.is_empty() => return Ok(None),
            (Some(name), true) => name,
            (Some(_), false) => {
                let problem = "can carry one id only: use `id_field`, or `body` = \"item\"";
                return Err(ConfigError::new("id_header", problem));
            }
        };
        header_name("id_header", name).map(Some)
    }

    /// The declared headers, with their secrets.
    pub(super) fn headers(&self, env: &Env<'_>) -> Result<HeaderMap, ConfigError> {
        let mut headers = HeaderMap::new();
        for (name, text) in &self.headers {
            let key = format!("headers.{name}");
            headers.insert(header_name(&key, name)?, text.value(&key, name, env)?);
        }
        Ok(headers)
    }

    /// Who signs.
    pub(super) fn signer(&self, env: &Env<'_>) -> Result<Option<Signer>, ConfigError> {
        let Some(source) = &self.signing else { return Ok(None) };
        if !self.body.is_single() {
            let problem = "signs one item per request: use `body` = \"message\"";
            return Err(ConfigError::new("signing", problem));
        }
        Signer::new(&source.resolve("signing", env)?).map(Some)
    }

    /// Where CloudEvents come from.
    pub(super) fn source(&self) -> Result<String, ConfigError> {
        let refused = |problem| Err(ConfigError::new("source", problem));
        match &self.source {
            None => Ok("tidegate".to_owned()),
            Some(_) if !self.body.is_event() => {
                refused("is of CloudEvents only: use `body` = \"cloudevents\", or remove it")
            }
            Some(text) if text.is_empty() || text.contains(char::is_whitespace) => {
                refused("is no URI reference: use one, such as https://shop.example.com/orders")
            }
            Some(text) => Ok(text.clone()),
        }
    }

    /// The connections' names with what they prove themselves by.
    pub(super) fn connections(
        &self,
        env: &Env<'_>,
    ) -> Result<Vec<(String, Credential)>, ConfigError> {
        if self.connections.is_empty() {
            let credential = credential("", self.bearer.as_ref(), self.basic.as_ref(), env)?;
            return Ok(vec![("main".to_owned(), credential)]);
        }
        if self.bearer.is_some() || self.basic.is_some() {
            let problem =
                "have credentials of their own: move `bearer` or `basic` into one of them";
            return Err(ConfigError::new("connections", problem));
        }
        distinct("connections", self.connections.iter().map(|it| it.name.as_str()))?;
        let resolved = self.connections.iter().map(|it| {
            let prefix = format!("connections.{}.", it.name);
            let credential = credential(&prefix, it.bearer.as_ref(), it.basic.as_ref(), env)?;
            Ok((it.name.clone(), credential))
        });
        resolved.collect()
    }

    /// What the requests are to the pacer.
    pub(super) fn operation(&self) -> String {
        let method = || reqwest::Method::from(self.method).as_str().to_ascii_lowercase();
        self.operation.clone().unwrap_or_else(method)
    }
}

impl HeaderText {
    fn value(&self, key: &str, name: &str, env: &Env<'_>) -> Result<HeaderValue, ConfigError> {
        let unsendable =
            |_| ConfigError::new(key, "cannot be sent: remove line breaks and the like");
        match self {
            Self::Plain(_) if name.eq_ignore_ascii_case("authorization") => {
                let problem = "holds a secret itself: use `bearer`, `basic`, { env = \"NAME\" } or \
                               { file = \"PATH\" }";
                Err(ConfigError::new(key, problem))
            }
            Self::Plain(text) => HeaderValue::from_str(text).map_err(unsendable),
            Self::Secret(source) => {
                let secret = source.resolve(key, env)?;
                let mut value = HeaderValue::from_str(secret.reveal()).map_err(unsendable)?;
                value.set_sensitive(true);
                Ok(value)
            }
        }
    }
}

impl From<Method> for reqwest::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
        }
    }
}

fn header_name(key: &str, name: &str) -> Result<HeaderName, ConfigError> {
    let name = HeaderName::try_from(name).map_err(|_| ConfigError::new(key, "names no header"))?;
    if OWN_HEADERS.contains(&name.as_str()) {
        return Err(ConfigError::new(key, "follows from the request itself: remove it"));
    }
    Ok(name)
}

fn credential(
    prefix: &str,
    bearer: Option<&SecretSource>,
    basic: Option<&Basic>,
    env: &Env<'_>,
) -> Result<Credential, ConfigError> {
    match (bearer, basic) {
        (None, None) => Ok(Credential::None),
        (Some(bearer), None) => {
            Ok(Credential::Bearer(bearer.resolve(&format!("{prefix}bearer"), env)?))
        }
        (None, Some(basic)) => {
            if basic.user.contains(':') || basic.user.chars().any(char::is_control) {
                let problem = "has a `:` or a line break in it, which cannot be sent";
                return Err(ConfigError::new(format!("{prefix}basic.user"), problem));
            }
            let password = basic.password.resolve(&format!("{prefix}basic.password"), env)?;
            Ok(Credential::Basic(basic.user.clone(), password))
        }
        (Some(_), Some(_)) => {
            let problem = "stands beside `basic`: a request has one credential, remove the other";
            Err(ConfigError::new(format!("{prefix}bearer"), problem))
        }
    }
}
