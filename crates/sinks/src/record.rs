//! The fields of a record, as they were written: numbers keep their digits, fields their order.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// All but what RFC 3986 leaves as it is everywhere.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A record's fields.
#[derive(Debug)]
pub struct Record<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Record<'a> {
    /// Reads a JSON object. The reason why it is none does not quote it.
    pub fn read(payload: &'a str) -> Result<Self, String> {
        serde_json::from_str(payload).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("the payload is no JSON object: see line {line}, column {column}")
        })
    }

    /// Whether there is such a field.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The JSON of a field.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.get(name).map(RawValue::get)
    }

    /// All fields, each with its JSON.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.fields.iter().map(|(name, value)| (name.as_ref(), value.get()))
    }

    /// Whether it has no fields but these.
    pub fn only(&self, names: &[&str]) -> bool {
        self.fields.iter().all(|(field, _)| names.contains(&field.as_ref()))
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        // Of two fields with one name, JSON readers take the last.
        self.fields.iter().rev().find(|(field, _)| field == name).map(|(_, value)| *value)
    }

    /// The text of a field that is a string, a number or a boolean, and not empty.
    pub fn text(&self, name: &str) -> Result<Text<'a>, String> {
        let value = self.get(name).map(RawValue::get).unwrap_or("null");
        let text = match value.as_bytes().first() {
            Some(b'"') => Text::String(unquoted(value)?),
            Some(b'{' | b'[') => return Err(format!("field `{name}` is not a plain value")),
            Some(b'n') | None => return Err(format!("field `{name}` is missing")),
            Some(_) => Text::Other(value),
        };
        if text.as_str().is_empty() {
            return Err(format!("field `{name}` is empty"));
        }
        Ok(text)
    }

    /// Writes the record as JSON: first `added`, which are pairs of a name and its JSON, then its
    /// own fields but those that `kept` turns down.
    pub fn write(&self, out: &mut String, added: &[(&str, &str)], kept: impl Fn(&str) -> bool) {
        let own = self.fields.iter().filter(|(name, _)| kept(name));
        let own = own.map(|(name, value)| (name.as_ref(), value.get()));
        out.push('{');
        for (index, (name, value)) in added.iter().copied().chain(own).enumerate() {
            out.push_str(if index == 0 { "" } else { "," });
            out.push_str(&quoted(name));
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
    }
}

/// The value of a plain field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// What was in a string.
    String(Cow<'a, str>),
    /// A number or a boolean.
    Other(&'a str),
}

impl Text<'_> {
    pub fn as_str(&self) -> &str {
        match self {
            Self::String(text) => text,
            Self::Other(text) => text,
        }
    }
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text as part of an address: nothing in it means anything there.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// What is in a JSON string, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Unquoted<'a>(#[serde(borrow)] Cow<'a, str>);

fn unquoted(json: &str) -> Result<Cow<'_, str>, String> {
    let text: Result<Unquoted<'_>, _> = serde_json::from_str(json);
    text.map(|text| text.0).map_err(|_| "a string in the payload is damaged".to_owned())
}

impl<'de: 'a, 'a> Deserialize<'de> for Record<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Record<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some((Unquoted(name), value)) = map.next_entry()? {
            fields.push((name, value));
        }
        Ok(Record { fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_they_were() {
        let payload = r#"{ "a" : 1.10, "b\u0041": [1, 2], "c":"x\"y" }"#;
        let record = Record::read(payload).unwrap();
        let mut out = String::new();
        record.write(&mut out, &[("id", "\"7\"")], |name| name != "c");
        assert_eq!(out, r#"{"id":"7","a":1.10,"bA":[1, 2]}"#);
    }

    #[test]
    fn plain_values_have_a_text() {
        let record =
            Record::read(r#"{"s":"ä\"","n":1e3,"b":true,"e":"","o":{},"z":null}"#).unwrap();
        let text = |name| record.text(name).map(|text| text.as_str().to_owned());
        assert_eq!(text("s").unwrap(), "ä\"");
        assert_eq!(text("n").unwrap(), "1e3");
        assert_eq!(text("b").unwrap(), "true");
        assert_eq!(text("e").unwrap_err(), "field `e` is empty");
        assert_eq!(text("o").unwrap_err(), "field `o` is not a plain value");
        assert_eq!(text("z").unwrap_err(), "field `z` is missing");
        assert_eq!(text("x").unwrap_err(), "field `x` is missing");
    }

    #[test]
    fn what_is_no_object_is_refused_without_quoting_it() {
        for payload in ["\"secret\"", "[1]", "{\"secret\":", "", "{} {}"] {
            let error = Record::read(payload).unwrap_err();
            assert!(error.contains("no JSON object") && !error.contains("secret"), "{error}");
        }
    }
}
