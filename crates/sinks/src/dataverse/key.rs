//! What identifies a record, as the Web API writes it.

use crate::record::{Record, Text, percent_encoded};

/// The primary key of a record. Anything else than a GUID could end the request's line in a batch.
pub fn guid<'a>(name: &str, record: &Record<'a>) -> Result<Text<'a>, String> {
    let text = record.text(name)?;
    if is_guid(text.as_str()) { Ok(text) } else { Err(format!("field `{name}` is no GUID")) }
}

/// `accounts(name='a',no=7)`: the record with these values in its alternate key.
pub fn reference(table: &str, names: &[String], record: &Record<'_>) -> Result<String, String> {
    let pairs: Result<Vec<_>, String> = names
        .iter()
        .map(|name| Ok(format!("{name}={}", literal(name, &record.text(name)?))))
        .collect();
    Ok(format!("{table}({})", pairs?.join(",")))
}

fn literal(name: &str, text: &Text<'_>) -> String {
    // A lookup column's value is the GUID of another record, and not quoted.
    let lookup = name.starts_with('_') && name.ends_with("_value");
    match text {
        Text::String(text) if lookup && is_guid(text) => text.to_string(),
        Text::String(text) => format!("'{}'", percent_encoded(&text.replace('\'', "''"))),
        Text::Other(text) => percent_encoded(text),
    }
}

fn is_guid(text: &str) -> bool {
    let mut lengths = text.split('-').map(str::len);
    let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    plain
        && [8, 4, 4, 4, 12].into_iter().all(|length| lengths.next() == Some(length))
        && lengths.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_within_their_quotes() {
        let payload = r#"{"a":"x') or (1 eq '1","n":-1.5,"b":true,
            "_c_value":"00000000-0000-0000-0000-00000000000a"}"#;
        let record = Record::read(payload).unwrap();
        let of = |name: &str| reference("t", &[name.to_owned()], &record).unwrap();
        assert_eq!(of("a"), "t(a='x%27%27%29%20or%20%281%20eq%20%27%271')");
        assert_eq!(of("n"), "t(n=-1.5)");
        assert_eq!(of("b"), "t(b=true)");
        assert_eq!(of("_c_value"), "t(_c_value=00000000-0000-0000-0000-00000000000a)");
    }

    #[test]
    fn a_guid_is_32_digits_in_five_groups() {
        assert!(is_guid("3F56361a-b210-4a74-8708-3c664038fa41"));
        for text in
            ["", "7", "3f56361a-b210-4a74-8708-3c664038fa4", "3f56361ab2104a7487083c664038fa41"]
        {
            assert!(!is_guid(text), "{text}");
        }
        assert!(!is_guid("3f56361a-b210-4a74-8708-3c664038fa41-"));
        assert!(!is_guid("3f56361g-b210-4a74-8708-3c664038fa41"));
    }
}
