//! What a point is called: an unsigned number or a UUID, and the same for every attempt.

use crate::record::Text;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::fmt;

/// Of the UUIDs that are made here: the version 5 UUID of `tidegate/qdrant` as a URL.
const NAMESPACE: u128 = 0x995f_6bba_fb0f_584c_8e91_05d3_80b4_b49a;

/// What a point is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PointId {
    Number(u64),
    Uuid(u128),
}

impl PointId {
    /// What a field names: a number, or a UUID in any form that Qdrant reads.
    pub fn from_field(text: &Text<'_>) -> Option<Self> {
        match text {
            Text::String(text) => uuid(text).map(Self::Uuid),
            Text::Other(text) => number(text).map(Self::Number),
        }
    }

    /// The point of an entity: the entity itself if it is called as points are, else a UUID that
    /// follows from its name. Two names never mean the same number: only its usual form is one.
    pub fn of(entity: &str) -> Self {
        let number = number(entity).map(Self::Number);
        let uuid = || uuid(entity).map(Self::Uuid).filter(|id| id.to_string() == entity);
        number.or_else(uuid).unwrap_or_else(|| Self::Uuid(named(entity)))
    }

    /// As JSON.
    pub fn to_json(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Uuid(_) => format!("\"{self}\""),
        }
    }
}

impl fmt::Display for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Uuid(bits) => {
                let digits = format!("{bits:032x}");
                let (a, rest) = digits.split_at(8);
                let (b, rest) = rest.split_at(4);
                let (c, rest) = rest.split_at(4);
                let (d, e) = rest.split_at(4);
                write!(f, "{a}-{b}-{c}-{d}-{e}")
            }
        }
    }
}

/// A number without a sign, a point or zeros before it.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// `550e8400-e29b-41d4-a716-446655440000`, the same without hyphens, or with `urn:uuid:` before it.
fn uuid(text: &str) -> Option<u128> {
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let hyphens = text.bytes().enumerate().filter(|(_, byte)| *byte == b'-').map(|(at, _)| at);
    let digits: String = match hyphens.collect::<Vec<_>>().as_slice() {
        [] => text.to_owned(),
        [8, 13, 18, 23] => text.replace('-', ""),
        _ => return None,
    };
    let plain = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(&digits, 16).ok().filter(|_| plain)
}

/// A UUID of version 5. Its hash is SHA-1 by definition, and guards nothing.
fn named(name: &str) -> u128 {
    let mut bytes = NAMESPACE.to_be_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &bytes);
    let bits = hash.as_ref().iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte));
    let version = bits & !(0xf << 76) | 0x5 << 76;
    version & !(0x3 << 62) | 0x2 << 62
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "550e8400-e29b-41d4-a716-446655440000";

    #[test]
    fn a_field_names_a_point_if_it_is_a_number_or_a_uuid() {
        let text = |text: &str| PointId::from_field(&Text::String(text.to_owned().into()));
        let same = text(UUID).unwrap();
        assert_eq!(same.to_json(), format!("\"{UUID}\""));
        for form in [UUID.to_uppercase(), UUID.replace('-', ""), format!("urn:uuid:{UUID}")] {
            assert_eq!(text(&form), Some(same), "{form}");
        }
        for none in ["", "7", "user-7", &UUID[1..], "550e8400e29b-41d4-a716-446655440000"] {
            assert_eq!(text(none), None, "{none}");
        }
        let other = |text| PointId::from_field(&Text::Other(text));
        assert_eq!(other("18446744073709551615").unwrap().to_json(), "18446744073709551615");
        for none in ["18446744073709551616", "-1", "1.0", "1e3", "true"] {
            assert_eq!(other(none), None, "{none}");
        }
    }

    #[test]
    fn an_entity_has_one_point_and_no_two_share_it() {
        assert_eq!(PointId::of("7"), PointId::Number(7));
        assert_eq!(PointId::of(UUID).to_string(), UUID);
        // As any other maker of version 5 UUIDs has it.
        let made = PointId::of("repo-1/entity-7").to_string();
        assert_eq!(made, "2786349a-86bc-5735-9445-fd2e35b4298c");
        assert_ne!(PointId::of("007"), PointId::of("7"));
        assert_ne!(PointId::of("+7"), PointId::of("7"));
        assert_ne!(PointId::of(&UUID.to_uppercase()), PointId::of(UUID));
    }
}
