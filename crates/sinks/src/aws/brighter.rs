//! An item → an entry as consumers that are written with Brighter expect it.

use super::{
    attributes::{escaped, is_plain},
    entry::{Entry, Fifo, fit},
    place::is_fifo,
};
use crate::brighter::{Attribute, Message, Sent};
use std::time::SystemTime;
use tidegate_core::sink::Item;

/// Attributes that hold JSON, in which every character can be written so that AWS takes it.
const JSON: [&str; 2] = ["bag", "cloudeventheaders"];

/// What an event is about. It is also among the attributes of CloudEvents, so that it can be left out here.
const SUBJECT: &str = "subject";

/// SNS takes subjects that are shorter.
const SUBJECT_END: usize = 100;

/// How a service lays a message out for a place.
pub type Layout = for<'a> fn(&Message<'a>, &str) -> Result<Sent<'a>, String>;

/// The entry for an item that goes to `place`, or what is wrong with the item.
pub fn entry(item: &Item<'_>, place: &str, layout: Layout) -> Result<Entry, String> {
    let message = Message::read(item, SystemTime::now())?;
    let sent = layout(&message, place)?;
    if sent.body.is_empty() {
        return Err("its payload is empty, and AWS takes no message without a body".to_owned());
    }
    if !is_plain(&sent.body) {
        return Err(
            "its payload has control characters that AWS refuses, and consumers read it as \
                    it is"
                .to_owned(),
        );
    }
    let fifo = is_fifo(place).then(|| Fifo {
        group: fit(sent.group_id.unwrap_or(item.id)).into_owned(),
        deduplication: fit(sent.deduplication_id.as_deref().unwrap_or(item.id)).into_owned(),
    });
    let attributes = sent.attributes.into_iter().filter_map(attribute).collect::<Result<_, _>>()?;
    let subject = sent.subject.filter(|it| is_subject(it)).map(str::to_owned);
    Ok(Entry { body: sent.body.into_owned(), attributes, subject, fifo })
}

/// An attribute that AWS takes; nothing if the message can do without.
fn attribute((name, value): Attribute) -> Option<Result<(String, String), String>> {
    let value = if JSON.contains(&name) { escaped(&value) } else { value };
    match (is_plain(&value), name) {
        (true, name) => Some(Ok((name.to_owned(), value))),
        (false, SUBJECT) => None,
        (false, name) => Some(Err(format!("its {name} has control characters that AWS refuses"))),
    }
}

/// Whether SNS takes it as a subject.
fn is_subject(text: &str) -> bool {
    let starts_well = text.starts_with(|c: char| !c.is_whitespace());
    starts_well && text.chars().count() < SUBJECT_END && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brighter::{sns, sqs};
    use std::{collections::BTreeMap, time::UNIX_EPOCH};
    use tidegate_core::Headers;

    const FIFO: &str = "https://host/1/orders.fifo";

    fn of(headers: &Headers, key: Option<&str>, payload: &[u8]) -> Result<Entry, String> {
        let published_at = Some(UNIX_EPOCH);
        let item = Item {
            topic: "orders",
            key,
            headers,
            payload,
            published_at,
            ..Item::record("m 1", "")
        };
        entry(&item, FIFO, sqs::message)
    }

    fn fifo(headers: &Headers, key: Option<&str>) -> (String, String) {
        let fifo = of(headers, key, b"{}").unwrap().fifo.unwrap();
        (fifo.group, fifo.deduplication)
    }

    fn subject(text: &str) -> (Option<String>, Option<String>) {
        let headers = Headers::from_iter([("ce-subject", text)]);
        let item = Item { topic: "t", headers: &headers, ..Item::record("1", "{}") };
        let attributes = |entry: Entry| BTreeMap::from_iter(entry.attributes);
        let of_sqs = entry(&item, "q", sqs::message).unwrap();
        let of_sns = entry(&item, "q", sns::notification).unwrap();
        let field = of_sns.subject.clone();
        for entry in [of_sqs.clone(), of_sns] {
            let events: serde_json::Value =
                serde_json::from_str(&attributes(entry)["cloudeventheaders"]).unwrap();
            assert_eq!(events["subject"], text);
        }
        (attributes(of_sqs).remove("subject"), field)
    }

    #[test]
    fn a_group_is_the_partition_key_and_applications_may_choose_the_deduplication_id() {
        // printf 'm 1' | sha256sum
        let hash = "6f7e3e2640ab22066d92c30f156077d185597d793a1312e645dc3dcd72520931";
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let chosen = Headers::from_iter([("messageDeduplicationId", "once")]);
        assert_eq!(fifo(&chosen, Some("k")), pair("k", "once"));
        let (group, deduplication) = fifo(&Headers::new(), None);
        assert_eq!((group.as_str(), deduplication.as_str()), (hash, hash));
        assert_eq!(fifo(&Headers::new(), Some("k")), pair("k", hash));
        let plain = Item { topic: "t", key: Some("k"), ..Item::record("1", "{}") };
        assert_eq!(entry(&plain, "https://host/1/orders", sqs::message).unwrap().fifo, None);
    }

    #[test]
    fn what_cannot_be_laid_out_says_why() {
        let refused = |name: &str, value: &str, payload: &[u8]| {
            of(&Headers::from_iter([(name, value)]), None, payload).unwrap_err()
        };
        assert!(refused("message-type", "MT_ODD", b"{}").contains("`MT_ODD`"));
        assert!(refused("a", "b", b"").contains("payload is empty"));
        assert!(refused("content-type", "application/gzip", b"").contains("payload is empty"));
        assert!(refused("a", "b", b"\xff").contains("no UTF-8 text"));
        assert!(refused("a", "b", b"a\x0bb").contains("control characters that AWS refuses"));
        let refused = refused("correlation-id", "\u{1}", b"{}");
        assert_eq!(refused, "its correlation-id has control characters that AWS refuses");
    }

    #[test]
    fn compressed_bodies_are_base64_whatever_their_bytes() {
        let headers = Headers::from_iter([("content-type", "application/gzip")]);
        assert_eq!(of(&headers, None, b"\x1f\x8b\0").unwrap().body, "H4sA");
    }

    #[test]
    fn json_has_what_no_attribute_can_hold() {
        let headers = Headers::from_iter([("odd", "\u{1}\u{fffe}\u{ffff}")]);
        let attributes = BTreeMap::from_iter(of(&headers, None, b"{}").unwrap().attributes);
        assert!(is_plain(&attributes["bag"]), "{}", attributes["bag"]);
        let bag: BTreeMap<String, String> = serde_json::from_str(&attributes["bag"]).unwrap();
        assert_eq!(bag["odd"], "\u{1}\u{fffe}\u{ffff}");
    }

    #[test]
    fn a_subject_that_aws_refuses_is_among_the_attributes_of_cloudevents_only() {
        let both = |text: &str| (Some(text.to_owned()), Some(text.to_owned()));
        let longest = "x".repeat(99);
        assert_eq!(subject("order 7"), both("order 7"));
        assert_eq!(subject(&longest), both(&longest));
        for odd in ["x".repeat(100), " x".to_owned(), "a\nb".to_owned(), "\u{85}".to_owned()] {
            assert_eq!(subject(&odd), (Some(odd.clone()), None));
        }
        assert_eq!(subject("\u{1}"), (None, None));
    }

    #[test]
    fn the_subject_counts_as_a_part_of_the_message() {
        let of = |headers: &Headers| {
            let item = Item { topic: "t", headers, ..Item::record("1", "{}") };
            entry(&item, "q", sns::notification).unwrap()
        };
        let with = of(&Headers::from_iter([("ce-subject", "seven")]));
        let without = Entry { subject: None, ..with.clone() };
        assert_eq!(with.size(), without.size() + 5);
    }
}
