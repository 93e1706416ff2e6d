//! Names with places for what an item says of itself: `{topic}`, `{key}`, `{header:NAME}`.

use crate::ConfigError;
use std::borrow::Cow;
use tidegate_core::sink::Item;

const UNEVEN: &str = "has a `{` or `}` without the other: use {topic}, {key} or {header:NAME}";

/// A name with places.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What stands before the first place, between two, and after the last.
    literals: Vec<String>,
    places: Vec<Place>,
}

/// What an item says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Topic,
    Key,
    /// By its name, in any case.
    Header(String),
}

impl Pattern {
    /// `key` names the config's key in errors.
    pub fn parse(key: &str, text: &str) -> Result<Self, ConfigError> {
        let refused = |problem: &str| ConfigError::new(key, problem);
        if text.is_empty() {
            return Err(refused("is empty: use a name, or {topic}"));
        }
        let (mut literals, mut places, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some((literal, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(|| refused(UNEVEN))?;
            if literal.contains('}') || name.contains('{') {
                return Err(refused(UNEVEN));
            }
            literals.push(literal.to_owned());
            places.push(Place::named(name).map_err(|problem| ConfigError::new(key, problem))?);
            rest = after;
        }
        if rest.contains('}') {
            return Err(refused(UNEVEN));
        }
        literals.push(rest.to_owned());
        Ok(Self { literals, places })
    }

    /// The places, in their order.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Whether items of different topics can have different names.
    pub fn depends_on_topic(&self) -> bool {
        self.places.contains(&Place::Topic)
    }

    /// The name as far as it is the same for many keys. `None` if it is the same for all items: then there
    /// is one destination only.
    pub fn destination(&self, item: &Item<'_>) -> Option<String> {
        if self.places.iter().all(|place| *place == Place::Key) {
            return None;
        }
        let mut text = String::new();
        for (index, literal) in self.literals.iter().enumerate() {
            text.push_str(literal);
            match self.places.get(index) {
                Some(Place::Key) => text.push_str("{key}"),
                Some(place) => text.push_str(place.value(item).unwrap_or_default()),
                None => {}
            }
        }
        Some(text)
    }

    /// What stands before the first place, between two, and after the last.
    pub fn literals(&self) -> &[String] {
        &self.literals
    }

    /// The name for one item, or what the item lacks. `encode` makes a value fit its place.
    pub fn fill(
        &self,
        item: &Item<'_>,
        encode: impl Fn(&str) -> Cow<'_, str>,
    ) -> Result<String, String> {
        let mut text = String::new();
        for (index, literal) in self.literals.iter().enumerate() {
            text.push_str(literal);
            if let Some(place) = self.places.get(index) {
                text.push_str(&encode(place.value(item)?));
            }
        }
        Ok(text)
    }
}

impl Place {
    fn named(name: &str) -> Result<Self, String> {
        match name.split_once(':') {
            None if name == "topic" => Ok(Self::Topic),
            None if name == "key" => Ok(Self::Key),
            Some(("header", name)) if !name.trim().is_empty() => {
                Ok(Self::Header(name.trim().to_owned()))
            }
            _ => Err(format!(
                "has `{{{name}}}`, which means nothing: use {{topic}}, {{key}} or {{header:NAME}}"
            )),
        }
    }

    fn value<'a>(&self, item: &Item<'a>) -> Result<&'a str, String> {
        let (value, what) = match self {
            Self::Topic => (Some(item.topic), "topic".to_owned()),
            Self::Key => (item.key, "key".to_owned()),
            Self::Header(name) => (item.headers.get(name), format!("header `{name}`")),
        };
        let missing = || format!("the item has no {what}, which says where it goes");
        value.filter(|value| !value.is_empty()).ok_or_else(missing)
    }
}

/// The value as it is.
pub fn verbatim(value: &str) -> Cow<'_, str> {
    Cow::Borrowed(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Headers;

    fn fill(text: &str) -> Result<String, String> {
        let headers = Headers::from_iter([("Tenant", "north"), ("empty", "")]);
        let item =
            Item { topic: "orders", key: Some("7"), headers: &headers, ..Item::record("1", "{}") };
        Pattern::parse("collection", text).unwrap().fill(&item, verbatim)
    }

    #[test]
    fn places_are_filled_with_what_the_item_says() {
        assert_eq!(fill("{topic}").unwrap(), "orders");
        assert_eq!(fill("all").unwrap(), "all");
        assert_eq!(fill("a-{topic}-{header:TENANT}.{key}!").unwrap(), "a-orders-north.7!");
    }

    #[test]
    fn an_item_that_cannot_fill_a_place_is_at_fault() {
        let missing = "the item has no header `empty`, which says where it goes";
        assert_eq!(fill("{header:empty}").unwrap_err(), missing);
        let record = Item::record("1", "{}");
        for (text, what) in [("{topic}", "topic"), ("{key}", "key")] {
            let error = Pattern::parse("topic", text).unwrap().fill(&record, verbatim).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused() {
        let refused = |text: &str| Pattern::parse("topic", text).unwrap_err().to_string();
        for text in ["{topic", "topic}", "{a{topic}}", "{topic}}"] {
            assert!(refused(text).starts_with("`topic` has a `{` or `}` without"), "{text}");
        }
        for text in ["{}", "{name}", "{header}", "{header:}", "{topic:x}"] {
            assert!(refused(text).contains("which means nothing"), "{text}");
        }
        assert!(refused("").contains("is empty"));
    }
}
