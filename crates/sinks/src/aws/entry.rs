//! An item → an entry of a batch.

use super::{
    attributes::{attributes, is_plain},
    place::is_fifo,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use ring::digest::{SHA256, digest};
use std::{borrow::Cow, fmt::Write};
use tidegate_core::sink::Item;

/// The type of all attributes. It counts as a part of the message.
pub const TYPE: &str = "String";

/// How a payload is written that is no text, or has characters that AWS refuses.
const BASE64: &str = "base64";

/// The longest id of a group or of a message.
const MAX_ID: usize = 128;

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub body: String,
    /// Names and values.
    pub attributes: Vec<(String, String)>,
    /// What SNS shows beside the body. SQS has none.
    pub subject: Option<String>,
    /// What FIFO queues and topics need.
    pub fifo: Option<Fifo>,
}

/// By what a FIFO queue or topic knows messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fifo {
    /// Messages of a group stay in order.
    pub group: String,
    /// A message that comes again within five minutes is recognized by it.
    pub deduplication: String,
}

impl Entry {
    /// The entry for an item that goes to `place`, or what is wrong with the item.
    pub fn new(item: &Item<'_>, place: &str) -> Result<Self, String> {
        if item.payload.is_empty() {
            return Err("its payload is empty, and AWS takes no message without a body".to_owned());
        }
        let (body, encoding) = body(item.payload);
        let fifo = is_fifo(place).then(|| {
            let deduplication = fit(item.id);
            let group = item.key.map_or_else(|| deduplication.clone(), fit);
            Fifo { group: group.into_owned(), deduplication: deduplication.into_owned() }
        });
        Ok(Self { body, attributes: attributes(item, encoding), subject: None, fifo })
    }

    /// How much of a batch it takes: AWS counts the body, and each attribute's name, type and value. The subject is
    /// counted, too, to be safe.
    pub fn size(&self) -> usize {
        let attribute = |(name, value): &(String, String)| name.len() + TYPE.len() + value.len();
        let subject = self.subject.as_ref().map_or(0, String::len);
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>() + subject
    }
}

/// The body for a payload, and how it is written if it is not the payload itself.
fn body(payload: &[u8]) -> (String, Option<&'static str>) {
    match str::from_utf8(payload) {
        Ok(text) if is_plain(text) => (text.to_owned(), None),
        _ => (BASE64_STANDARD.encode(payload), Some(BASE64)),
    }
}

/// An id as AWS wants it: 1 to 128 letters, digits and punctuation. What is none becomes a hash, which
/// is always the same for the same text.
pub(super) fn fit(text: &str) -> Cow<'_, str> {
    if (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Cow::Borrowed(text);
    }
    let mut hash = String::with_capacity(64);
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        // Writing to a string does not fail.
        let _ = write!(hash, "{byte:02x}");
    }
    Cow::Owned(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: &str, key: Option<&str>, place: &str) -> Entry {
        Entry::new(&Item { topic: "t", key, ..Item::record(id, "{}") }, place).unwrap()
    }

    fn fifo(id: &str, key: Option<&str>) -> (String, String) {
        let fifo = of(id, key, "q.fifo").fifo.unwrap();
        (fifo.group, fifo.deduplication)
    }

    #[test]
    fn a_group_is_a_key_and_a_message_without_one_is_a_group_of_its_own() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(fifo("m1", Some("order-7!~")), pair("order-7!~", "m1"));
        assert_eq!(fifo("m1", None), pair("m1", "m1"));
        assert_eq!(of("m1", Some("k"), "q").fifo, None);
    }

    #[test]
    fn what_can_be_no_group_becomes_a_hash_that_stays_the_same() {
        // printf 'a b' | sha256sum
        let hash = "c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65";
        assert_eq!(fifo("m1", Some("a b")).0, hash);
        let longest = "x".repeat(128);
        assert_eq!(fifo("m1", Some(&longest)).0, longest);
        for key in ["", "é", "a\n", &"x".repeat(129)] {
            let (group, _) = fifo("m1", Some(key));
            assert!(
                group.len() == 64 && group.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{group}"
            );
        }
        assert_eq!(fifo("a b", None), (hash.to_owned(), hash.to_owned()));
    }

    #[test]
    fn what_aws_refuses_in_a_body_goes_as_base64_and_says_so() {
        let of = |payload: &[u8]| {
            let item = Item { topic: "t", payload, ..Item::record("1", "") };
            let entry = Entry::new(&item, "q")?;
            Ok::<_, String>((entry.body, entry.attributes.last().unwrap().clone()))
        };
        let topic = ("tidegate-topic".to_owned(), "t".to_owned());
        let base64 = ("tidegate-encoding".to_owned(), "base64".to_owned());
        for text in ["{\"a\":1}", "tab\tline\r\n", "\u{7f}\u{85}é\u{fffd}\u{10ffff}"] {
            assert_eq!(of(text.as_bytes()).unwrap(), (text.to_owned(), topic.clone()));
        }
        for payload in [&b"\xff"[..], b"\0", b"a\x0bb", b"\x1b[0m", "\u{ffff}".as_bytes()] {
            let (body, last) = of(payload).unwrap();
            assert_eq!(
                (BASE64_STANDARD.decode(body).unwrap(), last),
                (payload.to_vec(), base64.clone())
            );
        }
        assert!(of(b"").unwrap_err().contains("payload is empty"));
    }

    #[test]
    fn the_size_is_that_of_the_body_and_of_all_attributes() {
        let entry = of("m1", Some("é"), "q");
        // The body, then names, types and values.
        let expected = 2 + (2 + 6 + 2) + (14 + 6 + 1) + (12 + 6 + 2);
        assert_eq!(entry.size(), expected);
    }
}
