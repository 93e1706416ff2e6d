//! How long round trips take with so many in flight: the level with the best throughput.
//!
//! A service that slows down rejects nothing. What can be seen is the round trip against the number in
//! flight when the request started. More in flight is worth it as long as in flight / round trip grows. So that
//! curve is kept, in classes of numbers, and old answers count less and less: what lies beyond the best
//! level is forgotten in the end, and tried again.

/// The first numbers have a class each; beyond, there are so many classes per doubling.
const PER_DOUBLING: u32 = 8;
/// What is kept of the weight of answers from one round trip to the next.
const KEPT: f64 = 0.985;
/// A class never weighs more: answers of today count more than thousands of yesterday.
const HEAVIEST: f64 = 60.0;
/// A class that weighs less is forgotten.
const LIGHTEST: f64 = 0.7;
/// Before anything is known, round trips are taken to vary by this share of their mean …
const VARIATION: f64 = 0.25;
/// … as if so many answers had shown it.
const PRIOR: f64 = 3.0;
/// A slowdown must be more than this …
const TOLERATED: f64 = 1.12;
/// … and this, in seconds: timers and threads of this process are late by as much …
const NOTICED: f64 = 0.003;
/// … and so many standard errors of either side.
const ERRORS: f64 = 2.0;
/// A lower level is as good if its throughput is this share of the best.
const AS_GOOD: f64 = 0.985;

/// Round trips against numbers in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve(Vec<Class>);

/// Answers to requests that started as one of about as many in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    weight: f64,
    in_flight: f64,
    mean: f64,
    squares: f64,
}

impl Curve {
    /// Adds the round trip of a request that started as one of so many.
    pub fn add(&mut self, in_flight: u32, seconds: f64) {
        let index = class_of(in_flight);
        if index >= self.0.len() {
            self.0.resize(index + 1, Class::default());
        }
        self.0[index].add(f64::from(in_flight), seconds);
    }

    /// A round trip has passed.
    pub fn age(&mut self) {
        for class in &mut self.0 {
            class.weight *= KEPT;
            class.squares *= KEPT;
            if class.weight < LIGHTEST {
                *class = Class::default();
            }
        }
    }

    /// The lowest number in flight beyond which throughput falls; `None` as long as the highest known number is the
    /// best.
    pub fn best(&self) -> Option<u32> {
        let variation = self.variation();
        let blocks = self.never_faster_with_more();
        let most = blocks.iter().map(Class::throughput).fold(0.0, f64::max);
        let best = blocks.iter().position(|block| block.throughput() >= AS_GOOD * most)?;
        let (best, top) = (blocks[best], *blocks.last()?);
        let error = |block: &Class| best.mean * variation / block.weight.sqrt();
        let tolerated = (best.mean * TOLERATED).max(best.mean + NOTICED);
        let slower = top.mean > tolerated + ERRORS * (error(&best) + error(&top));
        slower.then(|| best.in_flight.round().max(1.0) as u32)
    }

    /// Whether round trips seem to grow already, were it by chance.
    pub fn seems_slower(&self) -> bool {
        let blocks = self.never_faster_with_more();
        let ends = blocks.first().zip(blocks.last());
        ends.is_some_and(|(first, last)| {
            last.mean > (first.mean * TOLERATED).max(first.mean + NOTICED)
        })
    }

    /// How much round trips vary with the same number in flight, as a share of their mean.
    fn variation(&self) -> f64 {
        let (mut weight, mut squares) = (PRIOR, PRIOR * VARIATION.powi(2));
        for class in self.0.iter().filter(|class| class.weight > 1.0) {
            weight += class.weight - 1.0;
            squares += class.squares / class.mean.powi(2);
        }
        (squares / weight).sqrt()
    }

    /// More in flight never makes a service faster: where it seems so, neighbors count together.
    fn never_faster_with_more(&self) -> Vec<Class> {
        let mut blocks: Vec<Class> = Vec::with_capacity(self.0.len());
        for class in self.0.iter().filter(|class| class.weight > 0.0) {
            let mut block = *class;
            while let Some(before) = blocks.pop_if(|before| before.mean > block.mean) {
                block = before.joined(block);
            }
            blocks.push(block);
        }
        blocks
    }
}

impl Class {
    fn add(&mut self, in_flight: f64, seconds: f64) {
        if self.weight >= HEAVIEST {
            self.squares *= (HEAVIEST - 1.0) / self.weight;
            self.weight = HEAVIEST - 1.0;
        }
        self.weight += 1.0;
        let delta = seconds - self.mean;
        self.mean += delta / self.weight;
        self.squares += delta * (seconds - self.mean);
        self.in_flight += (in_flight - self.in_flight) / self.weight;
    }

    /// The highest number of both stands for both: with it, round trips were no longer than with fewer.
    fn joined(self, more: Self) -> Self {
        let weight = self.weight + more.weight;
        let mean = (self.mean * self.weight + more.mean * more.weight) / weight;
        Self { weight, mean, in_flight: more.in_flight, squares: self.squares + more.squares }
    }

    fn throughput(&self) -> f64 {
        self.in_flight / self.mean.max(1e-9)
    }
}

fn class_of(in_flight: u32) -> usize {
    if in_flight < PER_DOUBLING {
        return in_flight as usize;
    }
    let doublings = in_flight.ilog2() - PER_DOUBLING.ilog2();
    (doublings * PER_DOUBLING + (in_flight >> doublings)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(seconds: impl Fn(u32) -> f64, numbers: &[u32]) -> Curve {
        let mut curve = Curve::default();
        for n in numbers {
            (0..*n).for_each(|_| curve.add(*n, seconds(*n)));
        }
        curve
    }

    const RAMP: [u32; 10] = [1, 2, 4, 8, 16, 20, 23, 26, 29, 33];

    #[test]
    fn a_service_that_keeps_up_has_no_best_level() {
        assert_eq!(curve(|_| 0.1, &RAMP).best(), None);
    }

    #[test]
    fn beyond_a_knee_throughput_falls() {
        let knee = |n: u32| 0.1 * 1.1_f64.powi(n.saturating_sub(20) as i32);
        assert_eq!(curve(knee, &RAMP).best(), Some(20));
    }

    #[test]
    fn a_flat_knee_is_passed_as_long_as_it_pays() {
        let knee = |n: u32| 0.1 * 1.02_f64.powi(n.saturating_sub(20) as i32);
        assert_eq!(curve(knee, &RAMP).best(), None);
    }

    #[test]
    fn where_more_only_waits_longer_the_lowest_level_is_best() {
        assert_eq!(curve(|n| 0.1 * f64::from(n), &RAMP).best(), Some(1));
    }

    #[test]
    fn what_varies_is_no_slowdown() {
        let mut curve = Curve::default();
        [(1, 0.08), (1, 0.1), (2, 0.17), (2, 0.12), (2, 0.1), (4, 0.2), (4, 0.14), (4, 0.25)]
            .into_iter()
            .for_each(|(n, seconds)| curve.add(n, seconds));
        assert_eq!(curve.best(), None);
    }

    #[test]
    fn what_was_tried_long_ago_is_forgotten() {
        let knee = |n: u32| 0.1 * 1.1_f64.powi(n.saturating_sub(20) as i32);
        let mut curve = curve(knee, &RAMP);
        for _ in 0..400 {
            curve.age();
            (0..20).for_each(|_| curve.add(20, 0.1));
        }
        assert_eq!(curve.best(), None);
    }

    #[test]
    fn classes_follow_each_other() {
        let classes: Vec<usize> = (0..100_000).map(class_of).collect();
        assert!(classes.windows(2).all(|pair| pair[1] - pair[0] <= 1));
        assert!(classes.last().is_some_and(|last| *last < 130));
    }
}
