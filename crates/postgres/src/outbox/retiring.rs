//! Segments that are about to be truncated, and claims that leave them out: whoever truncates a segment needs it alone,
//! and a statement locks every table that it names. Why nothing is missed: `0022_retention_beside_claims.sql`.

use std::sync::LazyLock;

/// How many tables hold messages in turn.
const SEGMENTS: usize = 4;

/// Some of the segments, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segments(u8);

impl Segments {
    /// Whether all of these are among them.
    pub fn contains(self, those: Self) -> bool {
        self.0 & those.0 == those.0
    }

    pub fn numbers(self) -> Vec<i16> {
        (0..SEGMENTS as i16).filter(|segment| self.0 & 1 << segment != 0).collect()
    }

    /// The statement that claims messages from all segments but these. Each has its place in memory, by which the pool
    /// tells statements apart.
    pub fn claim_sql(self) -> &'static str {
        static CLAIMS: LazyLock<[String; 1 << SEGMENTS]> =
            LazyLock::new(|| std::array::from_fn(|bits| leave_out(Segments(bits as u8))));
        &CLAIMS[usize::from(self.0)]
    }
}

impl From<Vec<i16>> for Segments {
    fn from(numbers: Vec<i16>) -> Self {
        let known = numbers.into_iter().filter(|number| (0..SEGMENTS as i16).contains(number));
        Self(known.fold(0, |bits, number| bits | 1 << number))
    }
}

/// The parent of the segments has no rows of its own.
fn leave_out(segments: Segments) -> String {
    let all = include_str!("../sql/outbox/claim.sql").to_owned();
    segments.numbers().iter().fold(all, |sql, segment| {
        sql.replace(&format!("tidegate.message_{segment}"), "only tidegate.message")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_names_the_segments_that_it_reads_and_no_other() {
        for bits in 0..1 << SEGMENTS {
            let left_out = Segments(bits);
            assert_eq!(Segments::from(left_out.numbers()), left_out);
            let sql = left_out.claim_sql();
            let code: String = sql.lines().filter(|line| !line.trim().starts_with("--")).collect();
            for segment in 0..SEGMENTS as i16 {
                let named = code.matches(&format!("tidegate.message_{segment}")).count();
                let expected = if left_out.numbers().contains(&segment) { 0 } else { 2 };
                assert_eq!(named, expected, "{bits} {segment}");
            }
            assert_eq!(code.matches("tidegate.message").count(), 2 * SEGMENTS, "nothing else");
            assert_eq!(code.matches("only tidegate.message").count(), 2 * left_out.numbers().len());
        }
    }
}
