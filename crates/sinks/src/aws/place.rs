//! Which queue or topic an item goes to.

use crate::{
    ConfigError,
    pattern::{Pattern, verbatim},
};
use tidegate_core::sink::Item;

/// What the names of FIFO queues and topics end with.
const FIFO: &str = ".fifo";

/// What differs between queues and topics.
#[derive(Clone, Copy, Debug)]
pub struct Naming {
    /// The config's key, and what it names.
    pub key: &'static str,
    /// What stands before the name.
    pub separator: char,
    /// The longest name.
    pub longest: usize,
    /// What a place looks like, for messages.
    pub example: &'static str,
}

/// The queues or topics that a config means.
#[derive(Clone, Debug)]
pub struct Places {
    pattern: Pattern,
    naming: Naming,
    /// All but the name. What an item says of itself gets into the name only, so that it cannot reach
    /// another account.
    prefix: String,
}

impl Places {
    pub fn parse(text: &str, naming: Naming) -> Result<Self, ConfigError> {
        let Naming { key, separator, example, .. } = naming;
        let pattern = Pattern::parse(key, text)?;
        let refused = |problem: String| ConfigError::new(key, problem);
        let (first, rest) = pattern
            .literals()
            .split_first()
            .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let Some(end) = first.rfind(separator) else {
            return Err(refused(format!("is no {key}: use {example}")));
        };
        if rest.iter().any(|literal| literal.contains(separator)) {
            return Err(refused(format!(
                "has a place before the name of the {key}: use {example}"
            )));
        }
        let prefix = first[..=end].to_owned();
        let places = Self { pattern, naming, prefix };
        // As if all places were filled well: what is wrong then is wrong for all items.
        let valid = places.valid(&places.example());
        valid.map_err(|problem| ConfigError::new(key, format!("cannot be: {problem}")))?;
        Ok(places)
    }

    /// Where an item goes, or what is wrong with the item.
    pub fn of(&self, item: &Item<'_>) -> Result<String, String> {
        let place = self.pattern.fill(item, verbatim)?;
        self.valid(&place).map(|()| place)
    }

    /// Where an item goes, as far as that is the same for many keys.
    pub fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.pattern.destination(item)
    }

    /// All but the name.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The one place, if there is only one.
    pub fn only(&self) -> Option<String> {
        self.pattern.places().is_empty().then(|| self.example())
    }

    /// A place that could be.
    pub fn example(&self) -> String {
        self.pattern.literals().join("tidegate-check")
    }

    fn valid(&self, place: &str) -> Result<(), String> {
        let name = place.strip_prefix(self.prefix.as_str()).unwrap_or_default();
        let plain = name.strip_suffix(FIFO).unwrap_or(name);
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !plain.is_empty() && name.len() <= self.naming.longest && plain.bytes().all(known) {
            return Ok(());
        }
        let Naming { key, longest, .. } = self.naming;
        let name = name.escape_debug();
        Err(format!(
            "no {key} can have the name `{name}`: use up to {longest} letters, digits, - and _, with \
             or without .fifo"
        ))
    }
}

/// Whether a queue or a topic keeps the order of its groups.
pub fn is_fifo(place: &str) -> bool {
    place.ends_with(FIFO)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: Naming =
        Naming { key: "queue", separator: '/', longest: 80, example: "https://host/account/name" };

    fn of(text: &str, topic: &str) -> Result<String, String> {
        let item = Item { topic, key: Some("k"), ..Item::record("1", "{}") };
        Places::parse(text, QUEUE).map_err(|error| error.to_string())?.of(&item)
    }

    #[test]
    fn a_topic_gets_into_the_name_and_nowhere_else() {
        assert_eq!(
            of("https://h/1/a-{topic}.fifo", "orders").unwrap(),
            "https://h/1/a-orders.fifo"
        );
        for topic in ["a/b", "../2/b", "a b", "a.b", "a?b", "é", ".fifo", &"x".repeat(81)] {
            let refused = of("https://h/1/{topic}", topic).unwrap_err();
            assert!(refused.starts_with("no queue can have the name"), "{refused}");
        }
        assert_eq!(of("https://h/1/{topic}", "a.fifo").unwrap(), "https://h/1/a.fifo");
        assert!(of("https://h/1/{topic}", "").unwrap_err().contains("no topic"));
    }

    #[test]
    fn what_can_never_be_a_place_is_refused_at_once() {
        assert!(of("{topic}", "t").unwrap_err().contains("`queue` is no queue: use https://"));
        assert!(of("https://h/{topic}/q", "t").unwrap_err().contains("before the name"));
        assert!(of("https://h/1/a b", "t").unwrap_err().contains("`queue` cannot be: no queue"));
        assert!(of("https://h/1/{nothing}", "t").unwrap_err().contains("use {topic}"));
        assert!(is_fifo("https://h/1/a.fifo") && !is_fifo("https://h/1/afifo"));
    }

    #[test]
    fn the_only_place_is_known() {
        assert_eq!(Places::parse("https://h/1/q", QUEUE).unwrap().only().unwrap(), "https://h/1/q");
        let several = Places::parse("https://h/1/{topic}.fifo", QUEUE).unwrap();
        assert_eq!(several.only(), None);
        assert_eq!(several.example(), "https://h/1/tidegate-check.fifo");
    }
}
