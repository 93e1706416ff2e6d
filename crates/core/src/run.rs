//! One index of a batch, as the workload's code sees it.

use crate::limits::{MAX_EMITS_PER_RUN, MAX_NAME_BYTES};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// What a workload gets for one run: its index, its own randomness, and a place for its numbers.
#[derive(Debug)]
pub struct Run {
    seed: u64,
    index: u64,
    attempts: u32,
    timeout: Option<Duration>,
    /// Keyed by the batch's seed …
    stream: ChaCha8Rng,
    /// … and set to this run.
    streaming: bool,
    emitted: Emitted,
    refused: Option<RunError>,
}

impl Run {
    /// Run `index` of a batch with `seed`.
    pub fn new(seed: u64, index: u64) -> Self {
        Self {
            seed,
            index,
            attempts: 0,
            timeout: None,
            stream: stream(seed),
            streaming: false,
            emitted: Emitted::default(),
            refused: None,
        }
    }

    /// Becomes another run in the same place: what one run allocated serves the next.
    pub fn become_run(&mut self, seed: u64, index: u64) -> &mut Self {
        if self.seed != seed {
            self.stream = stream(seed);
        }
        self.seed = seed;
        self.index = index;
        self.attempts = 0;
        self.timeout = None;
        self.streaming = false;
        self.emitted.clear();
        self.refused = None;
        self
    }

    /// The same run on its next attempt.
    pub fn after(&mut self, attempts: u32) -> &mut Self {
        self.attempts = attempts;
        self
    }

    /// Limits the run's time; a workload that waits for others must observe it.
    pub fn within(&mut self, timeout: Option<Duration>) -> &mut Self {
        self.timeout = timeout;
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

    /// How long it may take.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// All the randomness that belongs to this run, as one number.
    pub fn seed(&self) -> u64 {
        let mut stream = self.stream.clone();
        rewind(&mut stream, self.index);
        stream.next_u64()
    }

    /// This run's own stream: ChaCha8 with BLAKE3 of the seed as its key and the index as its nonce,
    /// which is a strong hash of (seed, index, position). Equal for every attempt, independent of
    /// every other run.
    pub fn rng(&mut self) -> &mut ChaCha8Rng {
        if !self.streaming {
            rewind(&mut self.stream, self.index);
            self.streaming = true;
        }
        &mut self.stream
    }

    /// Adds `value` to the number `name`, whose mean, spread and quantiles the batch shows.
    pub fn number(&mut self, name: &str, value: f64) {
        if !value.is_finite() {
            self.refuse(format!("number `{name}` is {value}; only finite numbers have a mean"));
        } else if self.may_emit(name) {
            self.emitted.number(name, value);
        }
    }

    /// Counts this run under `value` of the category `name`.
    pub fn category(&mut self, name: &str, value: &str) {
        if self.may_emit(name) && self.may_emit(value) {
            self.emitted.category(name, value);
        }
    }

    /// What the run emitted, or why it may not.
    pub fn finish(&mut self) -> Result<&Emitted, RunError> {
        match self.refused.take() {
            Some(error) => Err(error),
            None => Ok(&self.emitted),
        }
    }

    fn may_emit(&mut self, name: &str) -> bool {
        if self.emitted.len() >= MAX_EMITS_PER_RUN {
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
#[derive(Clone, Debug, Default)]
pub struct Emitted {
    /// All names and categories, one after the other.
    text: String,
    numbers: Vec<(Span, f64)>,
    categories: Vec<(Span, Span)>,
}

/// Where a name begins and ends in the text.
type Span = (usize, usize);

impl Emitted {
    /// Adds a number.
    pub fn number(&mut self, name: &str, value: f64) {
        let name = self.write(name);
        self.numbers.push((name, value));
    }

    /// Adds a category.
    pub fn category(&mut self, name: &str, value: &str) {
        let entry = (self.write(name), self.write(value));
        self.categories.push(entry);
    }

    /// Name and value, in the order of emission.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, f64)> {
        self.numbers.iter().map(|(name, value)| (self.read(*name), *value))
    }

    /// Name and value, in the order of emission.
    pub fn categories(&self) -> impl Iterator<Item = (&str, &str)> {
        self.categories.iter().map(|(name, value)| (self.read(*name), self.read(*value)))
    }

    fn len(&self) -> usize {
        self.numbers.len() + self.categories.len()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.numbers.clear();
        self.categories.clear();
    }

    fn write(&mut self, name: &str) -> Span {
        let start = self.text.len();
        self.text.push_str(name);
        (start, self.text.len())
    }

    fn read(&self, (start, end): Span) -> &str {
        &self.text[start..end]
    }
}

/// The streams of all runs of a batch with this seed.
fn stream(seed: u64) -> ChaCha8Rng {
    let key = blake3::keyed_hash(b"tidegate: streams of a seed, v1.", &seed.to_le_bytes());
    ChaCha8Rng::from_seed(*key.as_bytes())
}

/// Moves to the beginning of run `index`'s stream.
fn rewind(stream: &mut ChaCha8Rng, index: u64) {
    stream.set_word_pos(0);
    stream.set_stream(index);
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RunError {
    /// For people.
    pub reason: String,
    /// Whether another attempt is pointless.
    pub permanent: bool,
    /// It was no attempt: the run is due again after this.
    pub postponed: Option<Duration>,
}

impl RunError {
    /// A failure that may pass.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), permanent: false, postponed: None }
    }

    /// A failure that every attempt will meet.
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self { permanent: true, ..Self::new(reason) }
    }

    /// No failure of the run: it could not be tried now, and uses up no attempt.
    pub fn postponed(reason: impl Into<String>, delay: Duration) -> Self {
        Self { postponed: Some(delay), ..Self::new(reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_index_alone() {
        let draw = |seed, index| Run::new(seed, index).rng().next_u64();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(2, 1));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_eq!(Run::new(7, 9).after(3).rng().next_u64(), draw(7, 9));
    }

    #[test]
    fn nothing_of_a_run_is_left_for_the_next_in_its_place() {
        let mut run = Run::new(1, 0);
        run.after(3).within(Some(Duration::MAX)).rng().next_u64();
        run.number("points", 1.0);
        run.category("winner", "red");
        run.number("points", f64::NAN);
        run.become_run(7, 9);
        assert_eq!((run.index(), run.attempts(), run.timeout()), (9, 0, None));
        assert_eq!(run.rng().next_u64(), Run::new(7, 9).rng().next_u64());
        run.number("tiles", 2.0);
        let emitted = run.finish().unwrap();
        assert_eq!(emitted.numbers().collect::<Vec<_>>(), [("tiles", 2.0)]);
        assert_eq!(emitted.categories().count(), 0);
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
