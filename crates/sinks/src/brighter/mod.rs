//! Messages that Brighter's consumers take for their own.
//!
//! [`Message::read`] makes one value of an item; [`rabbitmq`], [`kafka`], [`redis`], [`sqs`] and [`sns`] write it
//! down as each transport has it. All of this is pure.
//!
//! An item says what it is by these headers, whatever their case:
//!
//! | header | in Brighter | without it |
//! |---|---|---|
//! | `message-type` | message type: `MT_COMMAND`, `MT_EVENT`, `MT_DOCUMENT` | `MT_EVENT` |
//! | `content-type` | content type | `text/plain` |
//! | `correlation-id`, `reply-to` | correlation id, reply to | none |
//! | `ce-source`, `ce-type`, `ce-specversion` | source, type, spec version | `http://goparamore.io`, empty, `1.0` |
//! | `ce-subject`, `ce-dataschema`, `dataref` | subject, data schema, data ref | none |
//! | `traceparent`, `tracestate`, `baggage` | trace parent, trace state, baggage | none |
//! | `workflow-id`, `job-id`, `causation-id` | travel on none of these transports | |
//!
//! The item's id, topic, key and time are the message id, the topic, the partition key and the timestamp. All
//! other headers are its bag. Headers that were read from one JSON object
//! ([`Headers::further`](tidegate_core::Headers::further)) are its bag with their types, whatever their names.

mod attributes;
mod bag;
mod baggage;
pub mod kafka;
mod message;
pub mod rabbitmq;
pub mod redis;
pub mod sns;
pub mod sqs;
mod time;
mod value;

pub use attributes::{Attribute, Sent};
pub use bag::Bag;
pub use message::Message;
pub use value::Value;

#[cfg(test)]
mod tests;
