//! Drawing numbers.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Numbers that depend on a seed and on which service they are for, and on nothing else.
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64, service: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(service);
        Self(random)
    }

    /// Any number between two, equally likely.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    /// Any number between two, so that each doubling is equally likely.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.random())
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    /// Whether something happens that happens so often.
    pub fn chance(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    /// Any seed. Not more than a file can hold.
    pub fn seed(&mut self) -> u64 {
        u64::from(self.0.random::<u32>())
    }
}

/// To so many digits, so that files can be read.
pub(super) fn rounded(number: f64, digits: i32) -> f64 {
    if number == 0.0 {
        return 0.0;
    }
    let scale = digits - 1 - number.abs().log10().floor() as i32;
    // Powers of ten above one are exact, those below are not.
    if scale < 0 {
        let unit = 10_f64.powi(-scale);
        return (number / unit).round() * unit;
    }
    let unit = 10_f64.powi(scale);
    (number * unit).round() / unit
}
