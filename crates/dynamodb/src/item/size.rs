//! How large an item is, by DynamoDB's own rules: they decide what is refused, and what is charged.

use super::Item;
use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_core::limits::{MAX_HEADER_BYTES, MAX_KEY_BYTES, MAX_TOPIC_BYTES};

/// DynamoDB refuses items that are larger.
pub const MAX_ITEM_BYTES: usize = 400 << 10;

/// Bytes by which an item grows until it is delivered. A mark takes `OutstandingCreatedTime` out and writes
/// `DeliveryTime`, `DeliveredAt` and `ExpiresAt`; a message that is set aside says where its record is. Without this
/// room a message could be published and delivered, and never be marked.
pub const ROOM_FOR_MARKS: usize = 100;

/// Room for all of a message but its payload: headers whose every byte is escaped in JSON, topic, key, id and names.
const BESIDES: usize = 6 * MAX_HEADER_BYTES + 2 * MAX_TOPIC_BYTES + MAX_KEY_BYTES + (4 << 10);

/// A payload of so many bytes fits, whatever else is in the message.
pub const LARGEST_PAYLOAD: usize = MAX_ITEM_BYTES - ROOM_FOR_MARKS - BESIDES;

/// The bytes of an item: its names and its values.
pub fn size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_size(value)).sum()
}

/// The bytes of a value.
pub fn value_size(value: &AttributeValue) -> usize {
    // A list or a map costs three bytes, and one more for each of its members.
    const COLLECTION: usize = 3;
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        // Two digits to a byte, and a byte for the sign and the point.
        AttributeValue::N(digits) => digits.len().div_ceil(2) + 1,
        AttributeValue::L(values) => {
            COLLECTION + values.iter().map(|value| 1 + value_size(value)).sum::<usize>()
        }
        AttributeValue::M(values) => COLLECTION + values.len() + size(values),
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::Ns(numbers) => {
            numbers.iter().map(|digits| digits.len().div_ceil(2) + 1).sum()
        }
        AttributeValue::Bs(values) => values.iter().map(|bytes| bytes.as_ref().len()).sum(),
        _ => 1,
    }
}
