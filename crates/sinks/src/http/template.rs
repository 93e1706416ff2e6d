//! Addresses with places for a record's fields, or for what a message says of itself.
//!
//! A value fills its place and nothing else: it cannot change the host, add a segment to the path,
//! end it, or climb out of it.

use crate::{
    ConfigError,
    config::service_url,
    record::{Record, percent_encoded},
};
use tidegate_core::sink::Item;
use url::{Position, Url};

/// An address with places.
#[derive(Clone, Debug)]
pub struct Template {
    /// What stands before the first place, between two, and after the last.
    literals: Vec<String>,
    places: Vec<Place>,
    base: Url,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// The item's stable id.
    Id,
    /// A field of the record.
    Field(String),
    /// What the message is about.
    Topic,
    /// What must stay in order.
    Key,
}

/// Whose places an address has. A record may have a field that is called `topic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Record,
    Message,
}

impl Template {
    pub fn parse(text: &str, scope: Scope) -> Result<Self, ConfigError> {
        let refused = |problem: &str| ConfigError::new("url", problem);
        let (literals, places) = split(text, scope).map_err(|problem| refused(&problem))?;
        // Stands for each value while the rest is brought into its normal form.
        let stand_in = stand_in(text);
        let base = service_url("url", &literals.join(&stand_in))?;
        if base[..Position::BeforePath].contains(&stand_in) {
            return Err(refused("has a `{…}` before its path: the host is the same for all"));
        }
        let literals: Vec<_> = base.as_str().split(&stand_in).map(str::to_owned).collect();
        if literals.len() != places.len() + 1 {
            return Err(refused("has a `{…}` that disappears: remove `..` from the path"));
        }
        Ok(Self { literals, places, base })
    }

    /// Whether there are places at all.
    pub fn has_places(&self) -> bool {
        !self.places.is_empty()
    }

    /// Whether items of different topics have different addresses.
    pub fn has_topic(&self) -> bool {
        self.places.contains(&Place::Topic)
    }

    /// Its scheme, host and port, with another path and query.
    pub fn at(&self, target: &str) -> Url {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let mut url = self.base.clone();
        url.set_path(path);
        url.set_query(query);
        url
    }

    /// Whether it asks for TLS.
    pub fn secure(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// The address for one item, or what is wrong with the item.
    pub fn fill(&self, item: &Item<'_>) -> Result<Url, String> {
        if !self.has_places() {
            return Ok(self.base.clone());
        }
        let needs_record = self.places.iter().any(|place| matches!(place, Place::Field(_)));
        let record = needs_record.then(|| Record::read(item.text()?)).transpose()?;
        let mut text = String::new();
        for (index, literal) in self.literals.iter().enumerate() {
            text.push_str(literal);
            if let Some(place) = self.places.get(index) {
                text.push_str(&place.value(item, record.as_ref())?);
            }
        }
        match Url::parse(&text) {
            // Dots are no characters to encode, but they mean something as a whole segment.
            Ok(url) if url.as_str() == text => Ok(url),
            _ => Err("a field makes no segment of a path: it is `.` or `..`".to_owned()),
        }
    }
}

impl Place {
    fn value(&self, item: &Item<'_>, record: Option<&Record<'_>>) -> Result<String, String> {
        let (value, what) = match (self, record) {
            (Self::Field(name), Some(record)) => {
                return record.text(name).map(|text| percent_encoded(text.as_str()));
            }
            (Self::Topic, _) => (item.topic, "topic"),
            (Self::Key, _) => (item.key.unwrap_or_default(), "key"),
            _ => (item.id, "id"),
        };
        if value.is_empty() {
            return Err(format!("the item has no {what}"));
        }
        Ok(percent_encoded(value))
    }

    fn named(name: &str, scope: Scope) -> Result<Self, String> {
        match (name, scope) {
            ("", _) => Err("has a `{}`: name a field in it".to_owned()),
            ("id", _) => Ok(Self::Id),
            (name, Scope::Record) => Ok(Self::Field(name.to_owned())),
            ("topic", Scope::Message) => Ok(Self::Topic),
            ("key", Scope::Message) => Ok(Self::Key),
            (name, Scope::Message) => Err(format!(
                "has `{{{name}}}`, but of a message there are {{topic}}, {{key}} and {{id}}"
            )),
        }
    }
}

/// The text around places, and the places.
fn split(text: &str, scope: Scope) -> Result<(Vec<String>, Vec<Place>), String> {
    const UNEVEN: &str = "has a `{` or `}` without the other: write a literal one as %7B or %7D";
    let (mut literals, mut places, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some((literal, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or(UNEVEN)?;
        if literal.contains('}') || name.contains('{') {
            return Err(UNEVEN.to_owned());
        }
        literals.push(literal.to_owned());
        places.push(Place::named(name, scope)?);
        rest = after;
    }
    if rest.contains('}') {
        return Err(UNEVEN.to_owned());
    }
    literals.push(rest.to_owned());
    Ok((literals, places))
}

/// A word that is nowhere in `text`, and that an address keeps as it is.
fn stand_in(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    let mut word = "place".to_owned();
    while text.contains(&word) {
        word.push('x');
    }
    // So that it cannot begin within a literal and end beyond it.
    format!("q{word}q")
}

#[cfg(test)]
mod tests;
