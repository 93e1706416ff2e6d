//! What a table of messages looks like: a preset, what differs from it, or everything by hand.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};
use tidegate_core::{Class, Kind, StoreError};

/// How the rows of a table are messages. What is not said is the preset's, if there is one. Names of
/// columns are taken as they are, in their own case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mapping {
    /// Whose table it is like.
    pub preset: Option<Preset>,
    /// The table as SQL writes it: `outbox`, `shop.outbox`, `"Outbox"`.
    pub table: Option<String>,
    /// Columns that identify a row. Sinks recognize a message by them.
    pub id: Option<Vec<String>>,
    /// Columns by which rows are read, oldest first; none if the table has no order.
    pub order: Option<Vec<String>>,
    /// Which rows are still to be delivered.
    pub pending: Option<Pending>,
    /// What is written to a row that was delivered.
    pub done: Option<Done>,
    /// Columns whose values, joined by `.`, are the topic.
    pub topic: Option<Vec<String>>,
    /// What every topic begins with.
    pub topic_prefix: Option<String>,
    /// Columns whose values, joined by `:`, are the key. Messages of a key stay in order.
    pub key: Option<Vec<String>>,
    /// The column that is delivered.
    pub payload: Option<String>,
    /// What that column holds.
    pub payload_kind: Option<PayloadKind>,
    /// Headers, each with the column that has its value; with a preset, more of them.
    pub headers: BTreeMap<String, String>,
    /// A column with further headers: a JSON object.
    pub headers_column: Option<String>,
    /// A column whose value becomes the header `operation`.
    pub operation: Option<String>,
    /// A column that counts failed attempts.
    pub attempts: Option<String>,
    /// A column for the reason of the last failure.
    pub error: Option<String>,
    /// The column that tells when a message was published; the first of `order`, if that is a time.
    pub published_at: Option<String>,
    /// Only rows whose columns have these values.
    #[serde(rename = "where")]
    pub filter: BTreeMap<String, String>,
    /// Only rows that were published at least so long ago, by the database's clock: for applications that send
    /// their messages themselves, and leave only those to a relay that they could not send.
    #[serde(skip)]
    pub min_age: Option<Duration>,
}

/// Tables that many people have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// `entity_outbox`: changes of entities for search and vector stores.
    EntityOutbox,
    /// `outbox` or `outboxevent`: what Debezium's event router reads, with or without Quarkus.
    Debezium,
    /// `outbox`: Brighter's, of any version.
    Brighter,
}

/// Which rows are still to be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pending {
    /// `{ null = "processed_at" }`: those where a column is null.
    Null(String),
    /// `{ equal = { column = "published", value = "0" } }`: those where a column has a value.
    Equal {
        /// Which column.
        column: String,
        /// Its value, as text.
        value: String,
    },
    /// `"row"`: all that are there.
    Row,
}

/// What is written to a row that was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Done {
    /// `{ now = "processed_at" }`: the time, by the database's clock.
    Now(String),
    /// `{ set = { column = "published", value = "1" } }`: a value.
    Set {
        /// Which column.
        column: String,
        /// Its value, as text.
        value: String,
    },
    /// `"delete"`: the row is deleted.
    Delete,
}

/// What a payload is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadKind {
    /// JSON, in a column of any type.
    #[default]
    Json,
    /// Text; `text/plain` unless a header declares something else.
    Text,
    /// Bytes; `application/octet-stream` unless a header declares something else.
    Bytes,
}

impl Mapping {
    /// The mapping of a preset, to be changed where a table differs.
    pub fn of(preset: Preset) -> Self {
        Self { preset: Some(preset), ..Self::default() }
    }
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::EntityOutbox, Self::Debezium, Self::Brighter];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EntityOutbox => "entity-outbox",
            Self::Debezium => "debezium",
            Self::Brighter => "brighter",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = StoreError;

    fn from_str(word: &str) -> Result<Self, StoreError> {
        Self::ALL.into_iter().find(|preset| preset.as_str() == word).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join("`, `");
            refused(format!("`{word}` is no preset; there are `{known}`"))
        })
    }
}

/// A table cannot be adopted like this.
pub(super) fn refused(message: impl Into<String>) -> StoreError {
    StoreError::new(Kind::Refused, Class::Permanent, "adopt table", message)
}
