//! An item → the properties of a message that Brighter's consumers read.

use super::request::{OTHER_PROPERTIES, fit, short};
use crate::brighter::{Message, Value, rabbitmq};
use lapin::{
    BasicProperties,
    types::{AMQPValue, DecimalValue, FieldArray, FieldTable, LongString},
};
use std::time::SystemTime;
use tidegate_core::sink::Item;

/// The most digits behind the point that .NET's decimals have.
const MAX_SCALE: usize = 28;

/// The sign of a decimal, as .NET's client writes it.
const NEGATIVE: u32 = 1 << 31;

/// All but the delivery mode, or what is wrong with the item.
pub fn properties(
    item: &Item<'_>,
    now: SystemTime,
    frame_max: usize,
) -> Result<BasicProperties, String> {
    let message = Message::read(item, now)?;
    let rabbitmq::Properties { message_id, content_type, kind, timestamp, reply_to, headers } =
        rabbitmq::properties(&message)?;
    let size: usize = headers.iter().map(|(name, value)| name.len() + 1 + size(value)).sum();
    fit(OTHER_PROPERTIES + size, frame_max)?;
    let properties = BasicProperties::default()
        .with_message_id(short("id", message_id)?)
        .with_content_type(short("content type", content_type)?)
        .with_type(short("type", kind)?)
        .with_timestamp(timestamp)
        .with_headers(table(&headers)?);
    Ok(match reply_to {
        Some(reply_to) => properties.with_reply_to(short("reply to", reply_to)?),
        None => properties,
    })
}

fn table(members: &[(String, Value)]) -> Result<FieldTable, String> {
    let mut table = FieldTable::default();
    for (name, value) in members {
        table.insert(short("header", name)?, field(value)?);
    }
    Ok(table)
}

/// Dates and GUIDs stay the texts that they are in the bag: RabbitMQ's client for .NET has no type for them.
fn field(value: &Value) -> Result<AMQPValue, String> {
    Ok(match value {
        Value::Nothing => AMQPValue::Void,
        Value::Text(text) | Value::Date(text) | Value::Guid(text) => {
            AMQPValue::LongString(LongString::from(text.as_str()))
        }
        Value::Bool(is) => AMQPValue::Boolean(*is),
        Value::Int(number) => AMQPValue::LongInt(*number),
        Value::Number(text) => number(text),
        Value::List(values) => {
            let mut list = FieldArray::default();
            for value in values {
                list.push(field(value)?);
            }
            AMQPValue::FieldArray(list)
        }
        Value::Table(members) => AMQPValue::FieldTable(table(members)?),
    })
}

/// A long or a decimal if that is exact; else the nearest double.
fn number(text: &str) -> AMQPValue {
    if let Ok(whole) = text.parse() {
        return AMQPValue::LongLongInt(whole);
    }
    let decimal = decimal(text).map(AMQPValue::DecimalValue);
    decimal.unwrap_or_else(|| AMQPValue::Double(text.parse().unwrap_or_default()))
}

/// A sign and 31 bits of digits: what .NET's client can read.
fn decimal(text: &str) -> Option<DecimalValue> {
    let (sign, digits) = text.strip_prefix('-').map_or((0, text), |digits| (NEGATIVE, digits));
    let (whole, fraction) = digits.split_once('.')?;
    let scale = u8::try_from(fraction.len()).ok().filter(|_| fraction.len() <= MAX_SCALE)?;
    let value: u32 = format!("{whole}{fraction}").parse().ok().filter(|it| *it < NEGATIVE)?;
    Some(DecimalValue { scale, value: sign | value })
}

/// What a value takes in a frame, about: its type, and a length where it has one.
fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Date(text) | Value::Guid(text) => 5 + text.len(),
        Value::List(values) => 5 + values.iter().map(size).sum::<usize>(),
        Value::Table(members) => {
            5 + members.iter().map(|(name, value)| 1 + name.len() + size(value)).sum::<usize>()
        }
        Value::Nothing | Value::Bool(_) | Value::Int(_) | Value::Number(_) => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::types::ShortString;
    use std::time::UNIX_EPOCH;
    use tidegate_core::Headers;

    const FRAME: usize = 131_072;

    fn text(text: &str) -> AMQPValue {
        AMQPValue::LongString(LongString::from(text))
    }

    #[test]
    fn the_bag_travels_with_its_types() {
        let mut headers = Headers::new();
        let bag = r#"{"s":"x","i":3,"l":5000000000,"b":true,"d":-1.50,"e":1e99,"f":12345.678901234,
            "at":"2026-01-02T03:04:05Z","list":[1,null,"a"],"table":{"a":{"b":2}},"none":null}"#;
        headers.set_further(bag, &[]).unwrap();
        let item = Item { topic: "t", headers: &headers, ..Item::record("1", "{}") };
        let properties = properties(&item, UNIX_EPOCH, FRAME).unwrap();
        let sent = properties.headers().as_ref().unwrap().inner();
        let mut inner = FieldTable::default();
        inner.insert("b".into(), AMQPValue::LongInt(2));
        let mut outer = FieldTable::default();
        outer.insert("a".into(), AMQPValue::FieldTable(inner));
        let list = vec![AMQPValue::LongInt(1), AMQPValue::Void, text("a")];
        for (name, expected) in [
            ("s", text("x")),
            ("i", AMQPValue::LongInt(3)),
            ("l", AMQPValue::LongLongInt(5_000_000_000)),
            ("b", AMQPValue::Boolean(true)),
            ("d", AMQPValue::DecimalValue(DecimalValue { scale: 2, value: NEGATIVE | 150 })),
            ("e", AMQPValue::Double(1e99)),
            ("f", AMQPValue::Double(12345.678901234)),
            ("at", text("2026-01-02T03:04:05Z")),
            ("list", AMQPValue::FieldArray(list.into())),
            ("table", AMQPValue::FieldTable(outer)),
            ("HandledCount", AMQPValue::LongInt(0)),
            ("MessageType", text("MT_EVENT")),
        ] {
            assert_eq!(sent.get(&ShortString::from(name)), Some(&expected), "{name}");
        }
        assert!(!sent.contains_key(&ShortString::from("none")));
    }

    #[test]
    fn what_cannot_be_sent_is_the_items_fault() {
        let mut headers = Headers::new();
        headers.set_further(&format!(r#"{{"list":["{}"]}}"#, "x".repeat(300)), &[]).unwrap();
        let item = Item { topic: "t", headers: &headers, ..Item::record("1", "{}") };
        assert!(properties(&item, UNIX_EPOCH, 2048).is_ok());
        let error = properties(&item, UNIX_EPOCH, 1500).unwrap_err();
        assert_eq!(error, "its headers are larger than RabbitMQ takes, 1500 bytes");
        let headers = Headers::from_iter([("message-type", "MT_FOO")]);
        let item = Item { topic: "t", headers: &headers, ..Item::record("1", "{}") };
        let error = properties(&item, UNIX_EPOCH, FRAME).unwrap_err();
        assert!(error.contains("`MT_FOO` is none of Brighter's"), "{error}");
    }
}
