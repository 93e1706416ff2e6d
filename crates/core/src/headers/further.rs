//! Headers that a table keeps in one column: a JSON object whose values have types.

use super::{NoObject, set};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use std::fmt;

/// The members of an object, as they were written and as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Further {
    /// In their order, each with its value as JSON.
    pub members: Vec<(String, String)>,
    /// By name, without case: strings without their quotes, everything else as JSON. A null has no text.
    pub texts: Vec<(String, String)>,
}

impl Further {
    /// Reads an object, without the members that are named in `without`.
    pub(super) fn read(object: &str, without: &[&str]) -> Result<Self, NoObject> {
        let Members(members) = serde_json::from_str(object).map_err(|_| NoObject)?;
        let mut further = Self::default();
        for (name, value) in members {
            if !without.contains(&name.as_str()) {
                further.add(name, value.get());
            }
        }
        Ok(further)
    }

    /// Of two members with one name, JSON readers take the last.
    fn add(&mut self, name: String, json: &str) {
        if let Some(text) = text(json) {
            set(&mut self.texts, &name, text);
        }
        match self.members.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = json.to_owned(),
            None => self.members.push((name, json.to_owned())),
        }
    }
}

fn text(json: &str) -> Option<String> {
    match serde_json::from_str(json) {
        Ok(Value::Null) => None,
        Ok(Value::String(text)) => Some(text),
        _ => Some(json.to_owned()),
    }
}

/// The members of an object in their order, and all of those with the same name.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ReadMembers)
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
