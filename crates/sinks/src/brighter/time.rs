//! Times as Brighter writes and reads them.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

/// `2026-01-02T03:04:05.678Z`
pub fn rfc(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// `01/02/2026 03:04:05`, in UTC.
pub fn invariant(time: Timestamp) -> String {
    civil(time.to_zoned(TimeZone::UTC).datetime())
}

/// A text that Brighter takes for a date, as `01/02/2026 03:04:05`.
pub fn date(text: &str) -> Option<String> {
    read(text).map(civil)
}

fn civil(time: DateTime) -> String {
    time.strftime("%m/%d/%Y %H:%M:%S").to_string()
}

/// `YYYY-MM-DD`, then perhaps `Thh:mm`, seconds, a fraction of them, and `Z` or an offset. In UTC, or without
/// a zone as it is.
fn read(text: &str) -> Option<DateTime> {
    let (day, rest) = match text.split_once('T') {
        Some((day, rest)) => (day, Some(rest)),
        None => (text, None),
    };
    let day = read_day(day)?;
    let Some(rest) = rest else { return Some(day.to_datetime(Time::midnight())) };
    let (clock, offset) = split_zone(rest)?;
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    let digits = |text: &str| (1..=16).contains(&text.len()) && is_number(text);
    // Only seconds have a fraction.
    if fraction.is_some_and(|fraction| clock.len() != 8 || !digits(fraction)) {
        return None;
    }
    let time = day.to_datetime(read_clock(clock)?);
    time.checked_sub(SignedDuration::from_mins(offset)).ok()
}

fn read_day(text: &str) -> Option<Date> {
    let [year, month, day] = numbers(text, '-', &[4, 2, 2])?[..] else { return None };
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    Date::new(year, month, day).ok().filter(|date| date.year() > 0)
}

fn read_clock(text: &str) -> Option<Time> {
    let parts = numbers(text, ':', &[2, 2, 2]).or_else(|| numbers(text, ':', &[2, 2]))?;
    let part = |at: usize| i8::try_from(parts.get(at).copied().unwrap_or_default()).ok();
    Time::new(part(0)?, part(1)?, part(2)?, 0).ok()
}

/// What stands before the zone, and by how many minutes the zone is ahead.
fn split_zone(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let Some(at) = text.find(['+', '-']) else { return Some((text, 0)) };
    let [hours, minutes] = numbers(&text[at + 1..], ':', &[2, 2])?[..] else { return None };
    if hours > 14 || minutes > 59 {
        return None;
    }
    let ahead = i64::from(hours) * 60 + i64::from(minutes);
    Some((&text[..at], if text[at..].starts_with('-') { -ahead } else { ahead }))
}

/// Numbers of exactly so many digits each.
fn numbers(text: &str, separator: char, lengths: &[usize]) -> Option<Vec<i16>> {
    let parts: Vec<&str> = text.split(separator).collect();
    let fits = |(part, length): (&&str, &usize)| part.len() == *length && is_number(part);
    let all = parts.len() == lengths.len() && parts.iter().zip(lengths).all(fits);
    all.then(|| parts.iter().filter_map(|part| part.parse().ok()).collect())
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_and_not_rounded() {
        let time = Timestamp::new(1_767_323_045, 678_999_999).unwrap();
        assert_eq!(rfc(time), "2026-01-02T03:04:05.678Z");
        assert_eq!(invariant(time), "01/02/2026 03:04:05");
        assert_eq!(rfc(Timestamp::UNIX_EPOCH), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn dates_are_what_iso_8601_says() {
        for (text, expected) in [
            ("2026-01-02", "01/02/2026 00:00:00"),
            ("2026-01-02T03:04", "01/02/2026 03:04:00"),
            ("2026-01-02T03:04:05", "01/02/2026 03:04:05"),
            ("2026-01-02T03:04:05.6789012Z", "01/02/2026 03:04:05"),
            ("2026-01-02T03:04:05+02:00", "01/02/2026 01:04:05"),
            ("2026-01-01T23:30-01:30", "01/02/2026 01:00:00"),
        ] {
            assert_eq!(date(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "2026",
            "2026-01",
            "2026-1-2",
            "2026-13-01",
            "2026-02-30",
            "0000-01-01",
            "2026-01-02 03:04:05",
            "2026-01-02t03:04",
            "2026-01-02T",
            "2026-01-02T03",
            "2026-01-02T24:00",
            "2026-01-02T03:04.5",
            "2026-01-02T03:04:05.",
            "2026-01-02Z",
            "2026-01-02T03:04:05+2",
            "2026-01-02T03:04:05Zx",
            "é026-01-02",
            "2026-01-02T0é:04",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }
}
