//! What people and publishers know a message by.

use super::Position;
use serde::{Deserialize, Serialize, Serializer};
use std::{fmt, str::FromStr, sync::Arc};

/// What people and publishers know a message by: a number or a text, as its store chooses. Says nothing about the order
/// in which messages are read: see [`Position`].
///
/// Ids are listed numbers first, by their value, then texts, by their bytes. A store gives out ids of one kind only: to
/// one that numbers its messages, a text is an id that no message has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(from = "Written")]
pub struct MessageId(Inner);

/// The order of the variants is that of ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Inner {
    Number(i64),
    Text(Arc<str>),
}

/// As JSON has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(i64),
    Text(String),
}

impl MessageId {
    /// The id of a message that its store numbers.
    pub fn number(number: i64) -> Self {
        Self(Inner::Number(number))
    }

    /// The id of a message that its store names. A text that people would read as a number, such as `17`, cannot be
    /// typed: [`FromStr`] takes it for that number.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self(Inner::Text(text.into()))
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<i64> {
        match self.0 {
            Inner::Number(number) => Some(number),
            Inner::Text(_) => None,
        }
    }

    /// For a store that numbers its messages from one: the number behind which a list begins. Behind a text there is
    /// nothing, as texts come after all numbers.
    pub fn number_before(after: Option<&Self>) -> i64 {
        after.map_or(0, |id| id.as_number().unwrap_or(i64::MAX))
    }

    /// For a store that numbers its messages: those among ids that may be its own.
    pub fn numbers(ids: &[Self]) -> Vec<i64> {
        ids.iter().filter_map(Self::as_number).collect()
    }
}

/// On a log.
impl From<Position> for MessageId {
    fn from(position: Position) -> Self {
        Self::number(position.0)
    }
}

impl From<Written> for MessageId {
    fn from(written: Written) -> Self {
        match written {
            Written::Number(number) => Self::number(number),
            Written::Text(text) => Self::text(text),
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Number(number) => number.fmt(f),
            Inner::Text(text) => text.fmt(f),
        }
    }
}

impl Serialize for MessageId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Inner::Number(number) => serializer.serialize_i64(*number),
            Inner::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// No message has an empty id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of a message has at least one character")]
pub struct EmptyId;

/// What people type: a number as it is displayed, else a text. With leading zeros, a plus sign, or more digits than 64
/// bits hold, it is a text.
impl FromStr for MessageId {
    type Err = EmptyId;

    fn from_str(typed: &str) -> Result<Self, EmptyId> {
        if typed.is_empty() {
            return Err(EmptyId);
        }
        let number = typed.parse::<i64>().ok().filter(|number| number.to_string() == typed);
        Ok(number.map_or_else(|| Self::text(typed), Self::number))
    }
}

#[cfg(test)]
mod tests;
