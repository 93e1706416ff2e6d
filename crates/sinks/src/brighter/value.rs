//! A value of the bag, with the type that Brighter gives it when it reads its outbox.

use super::time;
use crate::record::{Record, quoted};
use serde_json::value::RawValue;

/// Lists and tables that are nested deeper are sent as the text of their JSON.
const MAX_DEPTH: usize = 32;

/// The most digits of a number that is written out without an exponent, as .NET's decimals have at most.
const MAX_DIGITS: usize = 28;

/// A value of the bag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Nothing,
    /// Any other text.
    Text(String),
    /// A text that looks like a date of ISO 8601, as it was written.
    Date(String),
    /// A text that looks like a GUID, in lower case.
    Guid(String),
    /// `true` or `false`
    Bool(bool),
    /// A whole number of 32 bits.
    Int(i32),
    /// Any other number, with its digits as they were written.
    Number(String),
    /// In its order.
    List(Vec<Value>),
    /// Names and values, in their order.
    Table(Vec<(String, Value)>),
}

impl Value {
    /// Reads JSON. What is no JSON is a text.
    pub fn read(json: &str) -> Self {
        Self::nested(json, 0)
    }

    fn nested(json: &str, depth: usize) -> Self {
        let json = json.trim();
        let value = match json.as_bytes().first() {
            Some(b'"') => serde_json::from_str(json).ok().map(text),
            Some(b'[') if depth < MAX_DEPTH => list(json, depth),
            Some(b'{') if depth < MAX_DEPTH => table(json, depth),
            Some(b'n') => Some(Self::Nothing),
            Some(b't' | b'f') => Some(Self::Bool(json == "true")),
            Some(b'-' | b'0'..=b'9') => Some(number(json)),
            _ => None,
        };
        value.unwrap_or_else(|| Self::Text(json.to_owned()))
    }

    /// As the header of a record, where all values are text. Nothing is none.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Text(text) | Self::Guid(text) => Some(text.clone()),
            Self::Date(text) => Some(time::date(text).unwrap_or_else(|| text.clone())),
            Self::Bool(true) => Some("True".to_owned()),
            Self::Bool(false) => Some("False".to_owned()),
            Self::Int(number) => Some(number.to_string()),
            Self::Number(number) => Some(written_out(number).unwrap_or_else(|| number.clone())),
            Self::List(_) | Self::Table(_) => Some(self.to_json()),
        }
    }

    fn to_json(&self) -> String {
        match self {
            Self::Nothing => "null".to_owned(),
            Self::Text(text) | Self::Date(text) | Self::Guid(text) => quoted(text),
            Self::Bool(is) => is.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Number(number) => number.clone(),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(Self::to_json).collect();
                format!("[{}]", values.join(","))
            }
            Self::Table(members) => {
                let member = |(name, value): &(String, Self)| {
                    format!("{}:{}", quoted(name), value.to_json())
                };
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }
}

fn text(text: String) -> Value {
    match text {
        guid if is_guid(&guid) => Value::Guid(guid.to_ascii_lowercase()),
        date if time::date(&date).is_some() => Value::Date(date),
        text => Value::Text(text),
    }
}

fn list(json: &str, depth: usize) -> Option<Value> {
    let values: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let values = values.into_iter().map(|value| Value::nested(value.get(), depth + 1));
    Some(Value::List(values.collect()))
}

fn table(json: &str, depth: usize) -> Option<Value> {
    let record = Record::read(json).ok()?;
    let member = |(name, json): (&str, &str)| (name.to_owned(), Value::nested(json, depth + 1));
    Some(Value::Table(record.fields().map(member).collect()))
}

fn number(json: &str) -> Value {
    match json.parse() {
        Ok(whole) => Value::Int(whole),
        Err(_) => Value::Number(json.to_owned()),
    }
}

/// Digits in groups of 8, 4, 4, 4 and 12, without braces.
fn is_guid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(is_hex)
}

/// A number without its exponent, if it has one and is not too long then.
pub(super) fn written_out(number: &str) -> Option<String> {
    let (digits, exponent) = number.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let all = format!("{whole}{fraction}");
    if point.unsigned_abs() as usize > MAX_DIGITS || all.len() > MAX_DIGITS {
        return None;
    }
    let plain = match usize::try_from(point) {
        Ok(point) if point >= all.len() => format!("{all:0<point$}"),
        Ok(point) if point > 0 => format!("{}.{}", &all[..point], &all[point..]),
        _ => format!("0.{}{all}", "0".repeat(point.unsigned_abs() as usize)),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let whole = or_zero(whole.trim_start_matches('0'));
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{dot}{fraction}"))
}

fn or_zero(digits: &str) -> &str {
    if digits.is_empty() { "0" } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_get_the_types_that_brighter_gives_them() {
        let text = |text: &str| Value::Text(text.to_owned());
        let number = |text: &str| Value::Number(text.to_owned());
        for (json, expected) in [
            ("null", Value::Nothing),
            (r#""s-1""#, text("s-1")),
            (r#""2026-01-02T03:04:05Z""#, Value::Date("2026-01-02T03:04:05Z".to_owned())),
            (
                r#""0F8FAD5B-D9CB-469F-A165-70867728950E""#,
                Value::Guid("0f8fad5b-d9cb-469f-a165-70867728950e".to_owned()),
            ),
            (r#""{0f8fad5b-d9cb-469f-a165-70867728950e}""#, {
                text("{0f8fad5b-d9cb-469f-a165-70867728950e}")
            }),
            ("true", Value::Bool(true)),
            ("3", Value::Int(3)),
            ("-2147483648", Value::Int(i32::MIN)),
            ("2147483648", number("2147483648")),
            ("1.50", number("1.50")),
            ("[1, [\"a\"]]", Value::List(vec![Value::Int(1), Value::List(vec![text("a")])])),
            (r#"{"b": 1, "a": null}"#, {
                Value::Table(vec![("b".into(), Value::Int(1)), ("a".into(), Value::Nothing)])
            }),
        ] {
            assert_eq!(Value::read(json), expected, "{json}");
        }
    }

    #[test]
    fn values_have_a_text_where_there_are_no_types() {
        for (json, expected) in [
            (r#""2026-01-02T03:04:05.6Z""#, "01/02/2026 03:04:05"),
            ("true", "True"),
            ("false", "False"),
            ("3", "3"),
            ("1.50", "1.50"),
            ("1.5e3", "1500"),
            ("-12e-3", "-0.012"),
            ("0.5e1", "5"),
            ("1e400", "1e400"),
            (r#"[1, "2026-01-02", {"a": true}]"#, r#"[1,"2026-01-02",{"a":true}]"#),
        ] {
            assert_eq!(Value::read(json).as_text().as_deref(), Some(expected), "{json}");
        }
        assert_eq!(Value::Nothing.as_text(), None);
    }

    #[test]
    fn what_is_nested_too_deep_is_text() {
        let deep = format!("{}1{}", "[".repeat(4000), "]".repeat(4000));
        let text = Value::read(&deep).as_text().unwrap();
        assert!(text.starts_with(&format!("{}\"[[", "[".repeat(MAX_DEPTH))), "{text}");
    }

    proptest! {
        #[test]
        fn numbers_keep_their_value(whole in -9999..9999_i32, exponent in -9..9_i32) {
            let json = format!("{whole}e{exponent}");
            let text = written_out(&json).unwrap();
            prop_assert!(!text.contains('e'));
            let (is, was): (f64, f64) = (text.parse().unwrap(), json.parse().unwrap());
            prop_assert!((is - was).abs() <= was.abs() * 1e-12, "{} {}", text, json);
        }

        #[test]
        fn any_text_is_a_value(json in "[\\[\\]{}\",:a0.eE+-]{0,30}") {
            let _ = Value::read(&json).as_text();
        }
    }
}
