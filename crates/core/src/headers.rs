//! What travels beside a payload: names and values, all text.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Beside a payload. Names are in lower case. Some have a meaning that sinks know; they pass on all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Headers(BTreeMap<String, String>);

/// The payload's media type. Without one a payload is JSON.
pub const CONTENT_TYPE: &str = "content-type";
/// `INSERT`, `UPDATE` or `DELETE`: what to do with the entity that the key names, in a sink that
/// holds state.
pub const OPERATION: &str = "operation";
/// With the value `order`: the key orders messages, and does not name the entity in a sink that holds
/// state. What the message is about must stand in the message; otherwise it is dead.
pub const KEY_USE: &str = "key-use";
/// See [`KEY_USE`].
pub const ORDER_ONLY: &str = "order";
/// W3C Trace Context, made by whoever publishes.
pub const TRACEPARENT: &str = "traceparent";
/// What CloudEvents attributes begin with: `ce-type`, `ce-source`, `ce-subject`, …
pub const CLOUD_EVENTS: &str = "ce-";
/// The media type of JSON.
pub const JSON: &str = "application/json";

static NONE: Headers = Headers::new();

impl Headers {
    /// No headers.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// No headers, for whoever needs to borrow them.
    pub const fn none() -> &'static Self {
        &NONE
    }

    /// Adds a header, or replaces its value.
    pub fn set(&mut self, name: impl AsRef<str>, value: impl Into<String>) {
        self.0.insert(name.as_ref().to_ascii_lowercase(), value.into());
    }

    /// The value of a header; `name` is in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The payload's media type, without parameters, in lower case.
    pub fn media_type(&self) -> String {
        let declared = self.get(CONTENT_TYPE).unwrap_or(JSON);
        declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Whether the payload is declared to be JSON.
    pub fn declares_json(&self) -> bool {
        let media_type = self.media_type();
        media_type == JSON || media_type.ends_with("+json")
    }
}

impl From<BTreeMap<String, String>> for Headers {
    fn from(headers: BTreeMap<String, String>) -> Self {
        let lower = |name: &String| !name.bytes().any(|byte| byte.is_ascii_uppercase());
        if headers.keys().all(lower) { Self(headers) } else { headers.into_iter().collect() }
    }
}

impl From<Headers> for BTreeMap<String, String> {
    fn from(headers: Headers) -> Self {
        headers.0
    }
}

impl<N: AsRef<str>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(pairs: T) -> Self {
        let mut headers = Self::new();
        pairs.into_iter().for_each(|(name, value)| headers.set(name, value));
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_declared_by_default_and_by_its_media_types() {
        let declares = |value: &str| Headers::from_iter([("Content-Type", value)]).declares_json();
        assert!(Headers::none().declares_json());
        assert!(declares("Application/JSON; charset=utf-8"));
        assert!(declares("application/vnd.acme.order+json"));
        assert!(!declares("text/plain"));
    }
}
