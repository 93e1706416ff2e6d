//! What travels beside a body: at most ten attributes.

use crate::beside::{KEY, TOPIC};
use std::collections::BTreeMap;
use tidegate_core::{
    headers::{CONTENT_TYPE, TRACEPARENT},
    sink::Item,
};

/// More than these are refused by SQS, and by SNS for queues that get raw messages.
const MOST: usize = 10;

/// Carries the message's id.
const ID: &str = "id";
/// Says how a body is written that is not the payload itself.
const ENCODING: &str = "tidegate-encoding";
/// Holds what can be no attribute, or has no place among the ten, as a JSON object.
const REST: &str = "tidegate-headers";
/// Names that mean something here: a header with such a name goes into the rest.
const OWN: [&str; 5] = [ID, TOPIC, KEY, ENCODING, REST];
/// Headers that get a place before others.
const FIRST: [&str; 2] = [CONTENT_TYPE, TRACEPARENT];

/// The longest name.
const MAX_NAME: usize = 256;

/// The attributes of an item, as names and values. Nothing is left out: what does not fit is in the
/// last one. `encoding` says how the body is written, if it is not the payload itself.
pub fn attributes(item: &Item<'_>, encoding: Option<&str>) -> Vec<(String, String)> {
    let topic = Some(item.topic).filter(|topic| !topic.is_empty());
    let own = [(ID, Some(item.id)), (TOPIC, topic), (KEY, item.key), (ENCODING, encoding)];
    let own = own.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let (clashing, headers): (Vec<_>, Vec<_>) =
        item.headers.iter().partition(|(name, _)| OWN.contains(name));
    let (first, others): (Vec<_>, Vec<_>) =
        headers.into_iter().partition(|(name, _)| FIRST.contains(name));
    let (mut placed, mut rest): (Vec<_>, Vec<_>) =
        own.chain(first).chain(others).partition(|(name, value)| fits(name, value));
    rest.extend(clashing);
    let places = if rest.is_empty() { MOST } else { MOST - 1 };
    if placed.len() > places {
        rest.extend(placed.split_off(MOST - 1));
    }
    let mut attributes: Vec<_> =
        placed.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if !rest.is_empty() {
        attributes.push((REST.to_owned(), json(&rest)));
    }
    attributes
}

/// Whether something can be an attribute.
fn fits(name: &str, value: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let lower = name.to_ascii_lowercase();
    let reserved = lower.starts_with("aws.") || lower.starts_with("amazon.");
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(known)
        && !name.split('.').any(str::is_empty)
        && !reserved
        && !value.is_empty()
        && is_plain(value)
}

/// Whether AWS takes a text: it refuses what XML cannot hold.
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(is_refused)
}

fn is_refused(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// A JSON object. Of two with the same name the first counts.
fn json(rest: &[(&str, &str)]) -> String {
    let mut object = BTreeMap::new();
    for (name, value) in rest {
        object.entry(*name).or_insert(*value);
    }
    escaped(&serde_json::to_string(&object).unwrap_or_default())
}

/// JSON that AWS takes. It escapes control characters by itself, and leaves these two as they are.
pub fn escaped(json: &str) -> String {
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_core::Headers;

    fn of(headers: &Headers, key: Option<&str>) -> Vec<String> {
        let item = Item { topic: "orders", key, headers, ..Item::record("m1", "{}") };
        let pair = |(name, value)| format!("{name}={value}");
        attributes(&item, None).into_iter().map(pair).collect()
    }

    #[test]
    fn headers_are_attributes_beside_what_tells_messages_apart() {
        let headers = Headers::from_iter([
            ("ce-type", "created"),
            ("content-type", "text/plain"),
            ("a", "1"),
            ("traceparent", "00-1"),
        ]);
        let expected = [
            "id=m1",
            "tidegate-topic=orders",
            "tidegate-key=k",
            "content-type=text/plain",
            "traceparent=00-1",
            "a=1",
            "ce-type=created",
        ];
        assert_eq!(of(&headers, Some("k")), expected);
        assert_eq!(of(&Headers::new(), None), ["id=m1", "tidegate-topic=orders"]);
    }

    #[test]
    fn ten_are_attributes_and_of_eleven_the_last_two_are_one() {
        let many = |count: usize| {
            let names: Vec<String> = (0..count).map(|n| format!("h{n}")).collect();
            Headers::from_iter(names.iter().map(|name| (name.as_str(), "v")))
        };
        let ten = of(&many(7), Some("k"));
        assert_eq!((ten.len(), ten[9].as_str()), (10, "h6=v"));
        let eleven = of(&many(8), Some("k"));
        assert_eq!((eleven.len(), eleven[8].as_str()), (10, "h5=v"));
        assert_eq!(eleven[9], r#"tidegate-headers={"h6":"v","h7":"v"}"#);
    }

    #[test]
    fn what_can_be_no_attribute_travels_in_the_last() {
        let headers = Headers::from_iter([
            ("empty", ""),
            ("a b", "blank"),
            ("aws.x", "reserved"),
            ("a..b", "dots"),
            ("control", "\u{1}\u{ffff}"),
            ("id", "own"),
        ]);
        let expected = r#"tidegate-headers={"a b":"blank","a..b":"dots","aws.x":"reserved","control":"\u0001\uffff","empty":"","id":"own"}"#;
        assert_eq!(of(&headers, None), ["id=m1", "tidegate-topic=orders", expected]);
        // An empty key is a key.
        assert_eq!(
            of(&Headers::new(), Some("")).last().unwrap(),
            r#"tidegate-headers={"tidegate-key":""}"#
        );
    }

    proptest! {
        /// Whatever headers there are, nothing is lost, and AWS takes what there is.
        #[test]
        fn nothing_is_left_out(headers in prop::collection::btree_map("[a-z. ]{0,4}", ".{0,3}", 0..20)) {
            let headers = Headers::from(headers);
            let item = Item { topic: "t", key: Some("k"), headers: &headers, ..Item::record("1", "{}") };
            let attributes = attributes(&item, Some("base64"));
            prop_assert!(attributes.len() <= 10);
            prop_assert!(attributes.iter().all(|(name, value)| fits(name, value)));
            let mut all: BTreeMap<String, String> = attributes.into_iter().collect();
            let rest: BTreeMap<String, String> =
                all.remove(REST).map(|rest| serde_json::from_str(&rest).unwrap()).unwrap_or_default();
            for (name, value) in headers.iter() {
                let found = rest.get(name).or_else(|| all.get(name));
                prop_assert_eq!(found.map(String::as_str), Some(value));
            }
        }
    }
}
