//! One index of a batch, as the workload's code sees it.

use crate::limits::{MAX_EMITS_PER_RUN, MAX_NAME_BYTES};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::time::Instant;

/// What a workload gets for one run: its index, its own randomness, and a place for its numbers.
#[derive(Debug)]
pub struct Run {
    index: u64,
    attempts: u32,
    key: StreamKey,
    stream: Option<ChaCha8Rng>,
    deadline: Option<Instant>,
    emitted: Emitted,
    refused: Option<RunError>,
}

impl Run {
    /// Run `index` of a batch with `seed`.
    #[inline]
    pub fn new(seed: u64, index: u64) -> Self {
        Self {
            index,
            attempts: 0,
            key: StreamKey { seed, index },
            stream: None,
            deadline: None,
            emitted: Emitted::default(),
            refused: None,
        }
    }

    /// The same run on its next attempt.
    #[inline]
    pub fn after(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Gives the run an end; a workload that waits for others must observe it.
    #[inline]
    pub fn until(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Its index in the batch.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// How many attempts at this run have failed before.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// When its time is up.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// All the randomness that belongs to this run, as one number.
    pub fn seed(&self) -> u64 {
        let bytes = self.key.bytes();
        u64::from_le_bytes(std::array::from_fn(|i| bytes[i]))
    }

    /// This run's own stream: ChaCha8 keyed by BLAKE3 of (seed, index). Equal for every attempt,
    /// independent of every other run.
    pub fn rng(&mut self) -> &mut ChaCha8Rng {
        self.stream.get_or_insert_with(|| ChaCha8Rng::from_seed(self.key.bytes()))
    }

    /// Adds `value` to the number `name`, whose mean, spread and quantiles the batch shows.
    pub fn number(&mut self, name: &str, value: f64) {
        if !value.is_finite() {
            self.refuse(format!("number `{name}` is {value}; only finite numbers have a mean"));
        } else if self.may_emit(name) {
            self.emitted.numbers.push((name.into(), value));
        }
    }

    /// Counts this run under `value` of the category `name`.
    pub fn category(&mut self, name: &str, value: &str) {
        if self.may_emit(name) && self.may_emit(value) {
            self.emitted.categories.push((name.into(), value.into()));
        }
    }

    /// What the run emitted, or why it may not.
    #[inline]
    pub fn finish(self) -> Result<Emitted, RunError> {
        match self.refused {
            Some(error) => Err(error),
            None => Ok(self.emitted),
        }
    }

    fn may_emit(&mut self, name: &str) -> bool {
        let count = self.emitted.numbers.len() + self.emitted.categories.len();
        if count >= MAX_EMITS_PER_RUN {
            self.refuse(format!("a run may emit {MAX_EMITS_PER_RUN} numbers and categories"));
        } else if name.len() > MAX_NAME_BYTES || name.contains('\0') {
            self.refuse(format!(
                "a name has at most {MAX_NAME_BYTES} bytes and no NUL; this one has {}",
                name.len()
            ));
        }
        self.refused.is_none()
    }

    fn refuse(&mut self, why: String) {
        self.refused.get_or_insert_with(|| RunError::permanent(why));
    }
}

/// The numbers and categories of one run.
#[derive(Debug, Default)]
pub struct Emitted {
    /// Name and value, in the order of emission.
    pub numbers: Vec<(Box<str>, f64)>,
    /// Name and value, in the order of emission.
    pub categories: Vec<(Box<str>, Box<str>)>,
}

#[derive(Clone, Copy, Debug)]
struct StreamKey {
    seed: u64,
    index: u64,
}

impl StreamKey {
    fn bytes(self) -> [u8; 32] {
        let mut text = *b"tidegate run v1 ________________";
        text[16..24].copy_from_slice(&self.seed.to_le_bytes());
        text[24..].copy_from_slice(&self.index.to_le_bytes());
        *blake3::hash(&text).as_bytes()
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RunError {
    /// For people.
    pub reason: String,
    /// Whether another attempt is pointless.
    pub permanent: bool,
}

impl RunError {
    /// A failure that may pass.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), permanent: false }
    }

    /// A failure that every attempt will meet.
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), permanent: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn a_stream_depends_on_seed_and_index_alone() {
        let draw = |seed, index| Run::new(seed, index).rng().next_u64();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(2, 1));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_eq!(Run::new(7, 9).after(3).rng().next_u64(), draw(7, 9));
    }

    #[test]
    fn what_cannot_be_averaged_fails_the_run() {
        let mut run = Run::new(1, 0);
        run.number("points", f64::NAN);
        run.number("points", 1.0);
        assert!(run.finish().unwrap_err().reason.contains("`points` is NaN"));
    }

    #[test]
    fn emissions_are_bounded() {
        let mut run = Run::new(1, 0);
        (0..=MAX_EMITS_PER_RUN).for_each(|_| run.number("x", 1.0));
        assert!(run.finish().unwrap_err().permanent);
    }
}
