//! Reading a few fields of a record in one pass, without building the rest.

use serde::{
    Deserialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Deserializer, Error, value::RawValue};
use std::{borrow::Cow, fmt};

/// The fields of the object in `text` that have these names. Fails if it is no valid JSON object.
pub fn pick<'t, const N: usize>(
    text: &'t str,
    names: [&str; N],
) -> Result<[Option<&'t RawValue>; N], Error> {
    let mut json = Deserializer::from_str(text);
    let fields = Fields(names).deserialize(&mut json)?;
    json.end()?;
    Ok(fields)
}

/// The text of a value that identifies something: what is in a string, or the value as it stands.
pub fn id_text(value: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    match value.get() {
        "null" => None,
        text if text.starts_with('"') => serde_json::from_str(text).ok().map(|Text(text)| text),
        text => Some(Cow::Borrowed(text)),
    }
}

struct Fields<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Fields<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Fields<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        let mut found = [None; N];
        while let Some(Name(name)) = map.next_key()? {
            match self.0.iter().position(|wanted| *wanted == name) {
                Some(index) => found[index] = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_what_is_named_and_checks_the_rest() {
        let text = r#"{"a":[1,{"id":2}],"i\u0064":"x\"y","n":7.50,"z":null}"#;
        let [id, n, z, none] = pick(text, ["id", "n", "z", "a b"]).unwrap();
        assert_eq!(id_text(id.unwrap()).unwrap(), "x\"y");
        assert_eq!(id_text(n.unwrap()).unwrap(), "7.50");
        assert_eq!(id_text(z.unwrap()), None);
        assert!(none.is_none());
        for broken in ["[]", "{", r#"{"a":tru}"#, "{} {}", "1"] {
            assert!(pick(broken, ["a"]).is_err(), "{broken}");
        }
    }
}
