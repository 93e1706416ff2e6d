//! Doubling until the service pushes back.

use super::answers::Answers;

/// So many slow answers in a row end a fast start.
const SLOW_ANSWERS: u32 = 3;

/// Grows by one per answer: twice as many in flight after each round trip.
#[derive(Clone, Debug, Default)]
pub(crate) struct FastStart {
    /// The level when the current round trip began.
    from: u32,
    /// The most in flight of which one was answered as fast as ever.
    proven: u32,
    /// Slow answers in a row.
    slow: u32,
}

impl FastStart {
    /// The level after a request was answered that began as one of `in_flight`. It is at most twice
    /// what the service is known to keep up with. It is bounded by the answers within a round trip, too:
    /// requests that hang would be answered by ever more requests otherwise.
    pub fn grown(&mut self, level: u32, in_flight: u32, slow: bool, answers: &Answers) -> u32 {
        if answers.now() == 1 {
            self.from = level;
        }
        self.slow = if slow { self.slow + 1 } else { 0 };
        if !slow {
            self.proven = self.proven.max(in_flight);
        }
        let known = self.proven.min(answers.per_round_trip());
        let grown = self.from.saturating_add(answers.now()).min(known.saturating_mul(2));
        grown.max(level)
    }

    /// Whether the service slows down.
    pub fn is_over(&self) -> bool {
        self.slow >= SLOW_ANSWERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Start(FastStart, Answers);

    impl Start {
        fn answered(&mut self, level: u32, n: u32, slow: bool) -> u32 {
            self.1.add();
            self.0.grown(level, n, slow, &self.1)
        }

        /// A round trip in which so many are answered.
        fn round(&mut self, level: u32, answered: u32) -> u32 {
            self.1.round_ended();
            (1..=answered).fold(level, |level, n| self.answered(level, n, false))
        }
    }

    #[test]
    fn doubles_per_round_trip() {
        let mut start = Start::default();
        let levels: Vec<u32> = (0..6)
            .scan(1, |level, _| {
                *level = start.round(*level, *level);
                Some(*level)
            })
            .collect();
        assert_eq!(levels, [2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn hanging_requests_do_not_count_as_answers() {
        let mut start = Start::default();
        let level = (0..9).fold(8, |level, _| start.round(level, 5));
        assert_eq!(level, 10);
    }

    #[test]
    fn what_nobody_uses_does_not_grow() {
        let mut start = Start::default();
        for _ in 0..100 {
            assert!(start.round(2, 1) <= 2);
        }
    }

    #[test]
    fn slow_answers_prove_nothing_and_end_it() {
        let mut start = Start::default();
        assert_eq!(start.answered(1, 1, false), 2);
        (0..3).for_each(|_| assert_eq!(start.answered(2, 2, true), 2));
        assert!(start.0.is_over());
    }
}
