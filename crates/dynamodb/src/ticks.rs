//! Time as Brighter's tables have it: hundreds of nanoseconds since the first of January of the year 1.

use jiff::Timestamp;
use std::time::{Duration, SystemTime};

/// Milliseconds from the year 1 to 1970.
const BEFORE_1970_MS: i64 = 62_135_596_800_000;
const PER_MS: i64 = 10_000;

/// A point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub i64);

impl Ticks {
    /// A time by this machine's clock.
    pub fn of(time: SystemTime) -> Self {
        let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(BEFORE_1970_MS * PER_MS + (since_1970.as_nanos() / 100) as i64)
    }

    /// Now, by this machine's clock.
    pub fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// So much later.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(ticks(duration)))
    }

    /// So much earlier.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(ticks(duration)))
    }

    /// How long after an earlier time; zero if it is not later.
    pub fn since(self, earlier: Self) -> Duration {
        let ticks = self.0.saturating_sub(earlier.0).max(0).unsigned_abs();
        Duration::from_micros(ticks / 10) + Duration::from_nanos(ticks % 10 * 100)
    }

    /// In milliseconds since 1970.
    pub fn unix_ms(self) -> i64 {
        self.0.div_euclid(PER_MS) - BEFORE_1970_MS
    }

    /// The same in milliseconds since 1970, back again.
    pub fn of_unix_ms(ms: i64) -> Self {
        Self(ms.saturating_add(BEFORE_1970_MS).saturating_mul(PER_MS))
    }

    /// `2026-01-02T03:04:05.678Z`
    pub fn text(self) -> String {
        let time = Timestamp::from_millisecond(self.unix_ms()).unwrap_or(Timestamp::UNIX_EPOCH);
        time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }
}

fn ticks(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_known_time_is_as_brighter_writes_it() {
        let time = Ticks(639_029_198_450_000_000);
        assert_eq!(time.text(), "2026-01-02T03:04:05.000Z");
        assert_eq!(time.unix_ms(), 1_767_323_045_000);
        assert_eq!(Ticks::of_unix_ms(1_767_323_045_000), time);
        let by_clock = SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_323_045_000);
        assert_eq!(Ticks::of(by_clock), time);
    }

    proptest! {
        #[test]
        fn durations_come_back(start in 0..1_i64 << 60, micros in 0..1_u64 << 50) {
            let (start, duration) = (Ticks(start), Duration::from_micros(micros));
            prop_assert_eq!(start.after(duration).since(start), duration);
            prop_assert_eq!(start.after(duration).before(duration), start);
            prop_assert_eq!(start.since(start.after(duration)), Duration::ZERO);
        }
    }
}
