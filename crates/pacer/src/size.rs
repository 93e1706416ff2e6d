//! How large each request may be.

/// After so many requests of one size that succeeded, a larger one is tried.
const STABLE: u32 = 16;
/// A size that was refused is tried again after so many times as many.
const REFUSED: u32 = 64;

/// The number of items in one request: halved when that is too many, grown back step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    max: usize,
    now: usize,
    successes: u32,
    /// A size that was too large.
    too_large: Option<usize>,
}

impl Size {
    /// As large as possible, until something says otherwise.
    pub fn new(max: usize) -> Self {
        let max = max.max(1);
        Self { max, now: max, successes: 0, too_large: None }
    }

    /// The number of items that the next request may have.
    pub fn get(&self) -> usize {
        self.now
    }

    /// A request of this size succeeded.
    pub fn succeeded(&mut self, size: usize) {
        self.too_large = self.too_large.filter(|refused| size < *refused);
        if size < self.now || self.now == self.max {
            return;
        }
        self.successes += 1;
        let larger = (self.now + self.now.div_ceil(2)).min(self.max);
        let refused = self.too_large.is_some_and(|refused| larger >= refused);
        let patience = if refused { STABLE * REFUSED } else { STABLE };
        if self.successes >= patience {
            self.now = larger;
            self.successes = 0;
        }
    }

    /// A request of this size was too large, or took too long.
    pub fn failed(&mut self, size: usize) {
        if size <= 1 {
            return;
        }
        self.now = self.now.min(size.div_ceil(2));
        self.too_large = Some(self.too_large.map_or(size, |known| known.min(size)));
        self.successes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_at_once_and_grows_back_slowly() {
        let mut size = Size::new(100);
        size.failed(100);
        size.failed(50);
        assert_eq!(size.get(), 25);
        (0..STABLE).for_each(|_| size.succeeded(25));
        assert_eq!(size.get(), 38);
        (0..STABLE).for_each(|_| size.succeeded(38));
        assert_eq!(size.get(), 38, "57 was too large once");
        (0..STABLE * REFUSED).for_each(|_| size.succeeded(38));
        assert_eq!(size.get(), 57);
    }

    #[test]
    fn late_answers_to_larger_requests_do_not_halve_again() {
        let mut size = Size::new(100);
        (0..20).for_each(|_| size.failed(100));
        assert_eq!(size.get(), 50);
    }

    #[test]
    fn one_is_the_least() {
        let mut size = Size::new(1);
        size.failed(1);
        assert_eq!(size.get(), 1);
    }

    #[test]
    fn smaller_requests_prove_nothing() {
        let mut size = Size::new(8);
        size.failed(8);
        (0..1_000_000).for_each(|_| size.succeeded(3));
        assert_eq!(size.get(), 4);
    }
}
