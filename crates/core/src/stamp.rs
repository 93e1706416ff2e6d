//! Numbers that are not handed out twice, even by a store that went back in time.
//!
//! A store that lost its last transactions (a crash without a flush, a failover to a standby that
//! lags, a restored backup) counts on from an earlier number, and hands out numbers again that
//! somebody still holds. A stamp is such a number with random bits below it: stamps grow as numbers
//! do, and two stamps of one number are equal with a chance of one in four million.

/// Random bits below the number. What is left is enough for two trillion numbers.
pub const NOISE_BITS: u32 = 22;

/// The stamp of a number. Only the lowest bits of `noise` count.
pub fn stamp(number: i64, noise: u64) -> i64 {
    number << NOISE_BITS | bits(noise)
}

/// The random bits of a stamp, as a store adds them to its own number.
pub fn bits(noise: u64) -> i64 {
    (noise & ((1 << NOISE_BITS) - 1)) as i64
}

/// The number in a stamp.
pub fn number(stamp: i64) -> i64 {
    stamp >> NOISE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_grow_with_their_numbers() {
        assert!(stamp(1, u64::MAX) < stamp(2, 0));
        assert_eq!(number(stamp(7, u64::MAX)), 7);
        assert_ne!(stamp(7, 1), stamp(7, 2));
    }
}
