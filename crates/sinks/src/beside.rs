//! What travels beside a payload in systems whose messages have headers.

use tidegate_core::sink::Item;

/// Carries the topic: a subject or a routing key may be made of other things.
pub const TOPIC: &str = "tidegate-topic";
/// Carries the key, as it is.
pub const KEY: &str = "tidegate-key";

/// The item's own headers, then its topic and its key as far as it has them.
pub fn headers<'a>(item: &Item<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let topic = Some(item.topic).filter(|topic| !topic.is_empty()).map(|topic| (TOPIC, topic));
    let key = item.key.map(|key| (KEY, key));
    item.headers.iter().chain(topic).chain(key)
}
