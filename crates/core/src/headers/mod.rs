//! What travels beside a payload: names and values.

mod further;

use further::Further;
use serde::{Deserialize, Serialize};
use std::{cmp::Ordering, collections::BTreeMap};

/// Beside a payload. Names keep their case and are compared without it: headers whose names differ only in
/// case are one header, and the last one counts. Some have a meaning that sinks know; they pass on all.
///
/// Values are text. Where a table keeps headers in one JSON object, their types are kept as well
/// ([`Headers::further`]), for sinks that can send them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Headers {
    /// By name, without case.
    own: Vec<(String, String)>,
    further: Option<Box<Further>>,
}

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
/// What CloudEvents attributes begin with, in any case: `ce-type`, `ce-source`, `ce-subject`, …
pub const CLOUD_EVENTS: &str = "ce-";
/// The media type of JSON.
pub const JSON: &str = "application/json";

static NONE: Headers = Headers::new();

impl Headers {
    /// No headers.
    pub const fn new() -> Self {
        Self { own: Vec::new(), further: None }
    }

    /// No headers, for whoever needs to borrow them.
    pub const fn none() -> &'static Self {
        &NONE
    }

    /// Adds a header, or replaces one whose name differs at most in case.
    pub fn set(&mut self, name: impl AsRef<str>, value: impl Into<String>) {
        set(&mut self.own, name.as_ref(), value.into());
    }

    /// Adds the headers of a JSON object but those named in `without`, beside those that were set. If they
    /// have the name of one that was set, that one counts. Fails if the text is no object.
    pub fn set_further(&mut self, object: &str, without: &[&str]) -> Result<(), NoObject> {
        self.further = Some(Box::new(Further::read(object, without)?));
        Ok(())
    }

    /// The value of a header, whatever the case of its name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_own(name).or_else(|| find(&self.further.as_ref()?.texts, name))
    }

    /// The value of a header that was set by itself, and is not from an object.
    pub fn get_own(&self, name: &str) -> Option<&str> {
        find(&self.own, name)
    }

    /// All of them: by name those that were set by themselves, then by name those of an object.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let further = self.further.iter().flat_map(|further| &further.texts);
        let further = further.map(pair).filter(|(name, _)| self.get_own(name).is_none());
        self.iter_own().chain(further)
    }

    /// Those that were set by themselves, by name.
    pub fn iter_own(&self) -> impl Iterator<Item = (&str, &str)> {
        self.own.iter().map(pair)
    }

    /// The members of the object that further headers were read from, in their order, each with its value
    /// as JSON. `None` if there was no object.
    pub fn further(&self) -> Option<impl Iterator<Item = (&str, &str)>> {
        self.further.as_ref().map(|further| further.members.iter().map(pair))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
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

/// A text that should have been a JSON object is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no JSON object")]
pub struct NoObject;

/// The attribute of a CloudEvent that a header is, in lower case as all attributes are.
pub fn attribute(name: &str) -> Option<String> {
    let prefix = name.get(..CLOUD_EVENTS.len())?;
    let is_attribute = prefix.eq_ignore_ascii_case(CLOUD_EVENTS);
    is_attribute.then(|| name[CLOUD_EVENTS.len()..].to_ascii_lowercase())
}

fn place(pairs: &[(String, String)], name: &str) -> Result<usize, usize> {
    pairs.binary_search_by(|(known, _)| compare(known, name))
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    place(pairs, name).ok().map(|at| pairs[at].1.as_str())
}

fn set(pairs: &mut Vec<(String, String)>, name: &str, value: String) {
    match place(pairs, name) {
        Ok(at) => pairs[at] = (name.to_owned(), value),
        Err(at) => pairs.insert(at, (name.to_owned(), value)),
    }
}

fn compare(one: &str, other: &str) -> Ordering {
    let lower = |byte: u8| byte.to_ascii_lowercase();
    one.bytes().map(lower).cmp(other.bytes().map(lower))
}

fn pair((name, value): &(String, String)) -> (&str, &str) {
    (name, value)
}

impl From<BTreeMap<String, String>> for Headers {
    fn from(headers: BTreeMap<String, String>) -> Self {
        headers.into_iter().collect()
    }
}

impl From<Headers> for BTreeMap<String, String> {
    fn from(headers: Headers) -> Self {
        headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
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
mod tests;
