//! Items → records of Kafka.

use crate::{
    Envelope,
    brighter::{Message, kafka},
    pattern::{Pattern, verbatim},
};
use rdkafka::{
    message::{Header, OwnedHeaders},
    producer::FutureRecord,
};
use std::time::SystemTime;
use tidegate_core::sink::Item;

/// The longest name of a topic.
const MAX_NAME: usize = 249;

/// The header that carries the message's id.
const ID: &str = "id";

/// The topic for an item, or why there is none.
pub fn topic(pattern: &Pattern, item: &Item<'_>) -> Result<String, String> {
    let topic = pattern.fill(item, verbatim)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if topic.len() > MAX_NAME || !topic.bytes().all(plain) || matches!(topic.as_str(), "." | "..") {
        return Err("no topic of Kafka can have the name that the item asks for: use up to 249 \
                    letters, digits and . _ -"
            .to_owned());
    }
    Ok(topic)
}

/// The record for an item, or what is wrong with the item.
pub fn record<'a>(
    envelope: Envelope,
    topic: &'a str,
    item: &Item<'a>,
) -> Result<FutureRecord<'a, str, [u8]>, String> {
    let record = FutureRecord::to(topic).payload(item.payload);
    match envelope {
        Envelope::Tidegate => {
            // Of headers with one name, the last counts.
            let record = record.headers(headers(item.headers.iter().chain([(ID, item.id)])));
            Ok(match item.key {
                Some(key) => record.key(key),
                None => record,
            })
        }
        Envelope::Brighter => {
            let made = kafka::record(&Message::read(item, SystemTime::now())?);
            let pairs = made.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            Ok(record.headers(headers(pairs)).key(made.key))
        }
    }
}

fn headers<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> OwnedHeaders {
    pairs.fold(OwnedHeaders::new(), |headers, (key, value)| {
        headers.insert(Header { key, value: Some(value) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::message::Headers as _;
    use tidegate_core::Headers;

    #[test]
    fn topics_have_names_that_kafka_takes() {
        let of = |name: &str| {
            let item = Item { topic: name, ..Item::record("1", "{}") };
            topic(&Pattern::parse("topic", "{topic}").unwrap(), &item)
        };
        assert_eq!(of("orders.v1-new_A").as_deref(), Ok("orders.v1-new_A"));
        let long = "x".repeat(250);
        for name in [".", "..", "a/b", "a b", "ä", "a\0", &long] {
            assert!(of(name).unwrap_err().contains("no topic of Kafka"), "{name}");
        }
    }

    #[test]
    fn all_of_a_message_is_in_its_record() {
        let headers = Headers::from_iter([("X-Trace", "00"), ("id", "own")]);
        let item = Item { key: Some("7"), headers: &headers, ..Item::record("m-1", "{}") };
        let record = record(Envelope::Tidegate, "orders", &item).unwrap();
        assert_eq!(
            (record.topic, record.key, record.payload),
            ("orders", Some("7"), Some(&b"{}"[..]))
        );
        let sent = record.headers.unwrap();
        let pairs: Vec<_> =
            sent.iter().map(|it| (it.key.to_owned(), it.value.unwrap().to_vec())).collect();
        let pair = |key: &str, value: &str| (key.to_owned(), value.as_bytes().to_vec());
        assert_eq!(pairs, [pair("id", "own"), pair("X-Trace", "00"), pair("id", "m-1")]);
    }

    #[test]
    fn a_record_for_brighter_has_a_key_even_if_it_is_empty() {
        let headers = Headers::from_iter([("message-type", "MT_COMMAND")]);
        let item = Item { topic: "orders", headers: &headers, ..Item::record("m-1", "{}") };
        let record = record(Envelope::Brighter, "orders", &item).unwrap();
        assert_eq!((record.key, record.payload), (Some(""), Some(&b"{}"[..])));
        let sent = record.headers.unwrap();
        let first = sent.iter().next().unwrap();
        assert_eq!((first.key, first.value), ("MessageType", Some(&b"MT_COMMAND"[..])));
    }
}
