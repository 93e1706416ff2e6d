//! Times as people and other systems read them.

use jiff::Timestamp;
use std::time::SystemTime;

/// RFC 3339, in UTC. A time beyond the year 9999 has none.
pub fn rfc3339(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_in_utc_with_as_many_digits_as_they_need() {
        let at = |millis| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        assert_eq!(at(1_700_000_000_000).as_deref(), Some("2023-11-14T22:13:20Z"));
        assert_eq!(at(1_700_000_000_250).as_deref(), Some("2023-11-14T22:13:20.25Z"));
        assert_eq!(at(u64::MAX / 1000), None);
    }
}
