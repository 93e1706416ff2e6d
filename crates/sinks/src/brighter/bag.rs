//! The bag: whatever an application adds to a message.

use super::{message::KNOWN, value::Value};
use crate::record::quoted;
use std::borrow::Cow;
use tidegate_core::Headers;

/// Names the producer within the application that wrote the message. Of no meaning to anybody else.
const PRODUCER_TOPIC: &str = "paramore.brighter.ProducerTopic";

/// Names with their values as JSON, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bag<'a>(Vec<(&'a str, Cow<'a, str>)>);

impl<'a> Bag<'a> {
    /// What headers were read from an object, and then what other headers there are that mean nothing else.
    pub(super) fn of(headers: &'a Headers) -> Self {
        let mut bag: Vec<(&str, Cow<'_, str>)> = Vec::new();
        for (name, json) in headers.further().into_iter().flatten() {
            bag.push((name, json.into()));
        }
        for (name, value) in headers.iter_own() {
            let is_known = KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !is_known && bag.iter().all(|(taken, _)| *taken != name) {
                bag.push((name, quoted(value).into()));
            }
        }
        bag.retain(|(name, _)| *name != PRODUCER_TOPIC);
        Self(bag)
    }

    /// Its values with their types.
    pub fn values(&self) -> impl Iterator<Item = (&'a str, Value)> {
        self.0.iter().map(|(name, json)| (*name, Value::read(json)))
    }

    /// One value as text.
    pub fn text(&self, name: &str) -> Option<String> {
        let (_, json) = self.0.iter().find(|(known, _)| *known == name)?;
        Value::read(json).as_text()
    }

    /// As one JSON object, `added` behind its own and in place of them.
    pub fn to_json(&self, added: &[(&str, &str)]) -> String {
        let kept = |name: &str| added.iter().all(|(replaced, _)| *replaced != name);
        let own = self.0.iter().filter(|(name, _)| kept(name));
        let own = own.map(|(name, json)| format!("{}:{json}", quoted(name)));
        let added = added.iter().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)));
        format!("{{{}}}", own.chain(added).collect::<Vec<_>>().join(","))
    }
}

/// A JSON object of strings, in this order.
pub(super) fn object(members: &[(&str, &str)]) -> String {
    Bag::default().to_json(members)
}
