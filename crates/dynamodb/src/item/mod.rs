//! Messages as items of Brighter's table.
//!
//! [`encode`] writes one as Brighter's own outbox does, so that its sweeper and its consumers read it; [`decode`]
//! reads what either has written.

mod decode;
mod encode;
mod size;

pub use decode::{Found, decode};
pub use encode::{Outgoing, encode, stamp};
pub use size::{LARGEST_PAYLOAD, size, value_size};

use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use std::collections::HashMap;

/// An item of a table.
pub type Item = HashMap<String, AttributeValue>;

/// The attributes that Tidegate itself reads and writes.
pub mod name {
    pub const MESSAGE_ID: &str = "MessageId";
    pub const TOPIC: &str = "Topic";
    pub const TOPIC_SHARD: &str = "TopicShard";
    pub const PARTITION_KEY: &str = "PartitionKey";
    pub const BODY: &str = "Body";
    pub const HEADER_BAG: &str = "HeaderBag";
    pub const CHARACTER_ENCODING: &str = "CharacterEncoding";
    pub const CREATED_AT: &str = "CreatedAt";
    pub const CREATED_TIME: &str = "CreatedTime";
    /// Only while a message is outstanding: the indexes of outstanding messages are by this.
    pub const OUTSTANDING: &str = "OutstandingCreatedTime";
    pub const DELIVERED_AT: &str = "DeliveredAt";
    pub const DELIVERY_TIME: &str = "DeliveryTime";
    /// In seconds since 1970, as DynamoDB wants it.
    pub const EXPIRES_AT: &str = "ExpiresAt";
    /// Tidegate's own: the message is not delivered before this.
    pub const NOT_BEFORE: &str = "TidegateNotBefore";
    /// Tidegate's own: where the record of a message that was set aside is, in the side table.
    pub const ASIDE: &str = "TidegateAside";
}

/// Headers that have an attribute of their own.
const HEADERS: [(&str, &str); 16] = [
    ("content-type", "ContentType"),
    ("correlation-id", "CorrelationId"),
    ("reply-to", "ReplyTo"),
    ("message-type", "MessageType"),
    ("workflow-id", "WorkflowId"),
    ("job-id", "JobId"),
    ("causation-id", "CausationId"),
    ("ce-source", "Source"),
    ("ce-type", "Type"),
    ("ce-dataschema", "DataSchema"),
    ("ce-subject", "Subject"),
    ("ce-specversion", "SpecVersion"),
    ("traceparent", "TraceParent"),
    ("tracestate", "TraceState"),
    ("baggage", "Baggage"),
    ("dataref", "DataRef"),
];

/// A text.
pub fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

/// A number.
pub fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Bytes.
pub fn bytes(value: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

/// The text of an attribute, if it has one.
pub fn get_text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

/// The number of an attribute, if it has one.
pub fn get_number<N: std::str::FromStr>(item: &Item, name: &str) -> Option<N> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
