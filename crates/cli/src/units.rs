//! Counts and durations as people write them.

use serde::{Deserialize, Deserializer, de::Error};
use std::{str::FromStr, time::Duration};
use tidegate::{UnfitLease, limits::MAX_DELAY};

/// Reads a count: `100000`, `100_000`, `100k`, `10M`, `1G`, `1e6`.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no count: write 100000, 100_000, 100k, 10M, 1G or 1e6");
    let plain = text.replace('_', "");
    let (digits, factor) = match plain.chars().last() {
        Some('k' | 'K') => (&plain[..plain.len() - 1], 1_000),
        Some('M') => (&plain[..plain.len() - 1], 1_000_000),
        Some('G') => (&plain[..plain.len() - 1], 1_000_000_000),
        _ => (plain.as_str(), 1),
    };
    let number = match digits.split_once(['e', 'E']) {
        Some((digits, power)) => power_of_ten(digits, power),
        None => digits.parse::<u64>().ok(),
    };
    number.and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)
}

fn power_of_ten(digits: &str, power: &str) -> Option<u64> {
    let power = 10u64.checked_pow(power.parse().ok()?)?;
    digits.parse::<u64>().ok()?.checked_mul(power)
}

/// Reads a count above zero.
pub fn positive(text: &str) -> Result<u64, String> {
    count(text)?.checked_sub(1).map(|less| less + 1).ok_or_else(|| "must be above 0".to_owned())
}

/// Reads a text. An empty one stands for a variable that is unset, and would mean "any" or "none".
pub fn text(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty: is a variable unset?".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Times beyond it cannot be added to another one.
const LONGEST: Duration = MAX_DELAY;

/// A time: `250ms`, `30s`, `5m`, `1h`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no time: write 250ms, 30s, 5m, 1h or 7d");
        let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let seconds = match &text[unit..] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        let number: f64 = text[..unit].parse().map_err(|_| wrong())?;
        match Duration::try_from_secs_f64(number * seconds) {
            Ok(time) if time <= LONGEST => Ok(Span(time)),
            _ => Err(format!("`{text}` is too long: a time is at most 36500d, 100 years")),
        }
    }
}

/// A time above zero.
pub fn positive_span(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if span.0.is_zero() { Err("must be above 0".to_owned()) } else { Ok(span) }
}

/// How long a lease lasts: not shorter than it can be renewed, and not longer than work should wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTime(pub Duration);

impl FromStr for LeaseTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Span(lease) = positive_span(text)?;
        UnfitLease::check(lease).map_err(|unfit| unfit.to_string())?;
        Ok(Self(lease))
    }
}

impl<'de> Deserialize<'de> for LeaseTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A time, or `none` for as long as it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(pub Option<Duration>);

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Timeout(None)),
            _ => positive_span(text).map(|span| Timeout(Some(span.0))),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        positive_span(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_underscores_suffixes_and_powers() {
        for (text, expected) in [
            ("7", 7),
            ("100_000", 100_000),
            ("5k", 5_000),
            ("10M", 10_000_000),
            ("1G", 1_000_000_000),
            ("1e6", 1_000_000),
            ("25e3", 25_000),
        ] {
            assert_eq!(count(text), Ok(expected), "{text}");
        }
        for text in ["", "k", "-1", "1.5", "1e", "e3", "1e99", "20000000000G", "ten"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert_eq!(positive("1"), Ok(1));
        assert!(positive("0").is_err());
    }

    #[test]
    fn times_have_a_unit() {
        for (text, millis) in [("250ms", 250), ("30s", 30_000), ("1.5m", 90_000), ("1h", 3_600_000)]
        {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(millis))), "{text}");
        }
        for text in ["", "5", "s", "5 s", "-1s", "1w", "1.2.3s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        for text in ["36501d", "106751991167301d", "99999999999d", "1e9d"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
            assert!(text.parse::<Timeout>().is_err(), "{text}");
        }
        assert!("36500d".parse::<Span>().is_ok() && "1d".parse::<LeaseTime>().is_ok());
        for text in ["1ms", "999ms", "0.9s", "0s", "1", "25h"] {
            assert!(text.parse::<LeaseTime>().is_err(), "{text}");
        }
        assert_eq!("1s".parse(), Ok(LeaseTime(Duration::from_secs(1))));
        assert_eq!("none".parse(), Ok(Timeout(None)));
        assert!("0s".parse::<Timeout>().is_err());
    }
}
