//! All values of one named number.

use super::{exact::ExactSum, histogram::Histogram};
use serde::{Deserialize, Serialize};

/// Count, sums, extremes and distribution of a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    count: u64,
    sum: ExactSum,
    squares: ExactSum,
    extremes: Option<(f64, f64)>,
    histogram: Histogram,
}

impl Series {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        let value = value + 0.0; // one zero, so that which of them came first leaves no trace
        self.count += 1;
        self.sum.add(value);
        self.squares.add_square(value);
        self.histogram.add(value);
        self.widen((value, value));
    }

    /// Adds all values of another series.
    pub fn merge(&mut self, other: &Series) {
        self.count += other.count;
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
        self.histogram.merge(&other.histogram);
        if let Some(extremes) = other.extremes {
            self.widen(extremes);
        }
    }

    fn widen(&mut self, (low, high): (f64, f64)) {
        let (min, max) = self.extremes.unwrap_or((low, high));
        self.extremes = Some((min.min(low), max.max(high)));
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest and the largest value.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        self.extremes
    }

    /// The distribution: value and count, ascending.
    pub fn bins(&self) -> Vec<(f64, u64)> {
        self.histogram.bins()
    }

    /// The mean, rounded once.
    pub fn mean(&self) -> f64 {
        let (high, low) = self.sum.value();
        (high / self.count as f64) + (low / self.count as f64)
    }

    /// The sample's standard deviation; 0 for fewer than two values.
    pub fn standard_deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = self.count as f64;
        // Σx² − (Σx)²/n in pairs of f64: the difference may be much smaller than its terms.
        let (high, low) = self.sum.value();
        let square = high * high;
        let square_low = high.mul_add(high, -square) + 2.0 * high * low;
        let part = square / n;
        let part_low = ((-part).mul_add(n, square) + square_low) / n;
        let (total, total_low) = self.squares.value();
        let spread = (total - part) + (total_low - part_low);
        (spread.max(0.0) / (n - 1.0)).sqrt()
    }

    /// The smallest value that at least the share `q` of all values do not exceed; exact up to 512
    /// distinct values, beyond that within 0.4 %.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let bins = self.bins();
        let (min, max) = self.extremes.unwrap_or((f64::NAN, f64::NAN));
        shares.map(|q| {
            let rank = (q * self.count as f64).ceil().max(1.0) as u64;
            let mut seen = 0;
            let bin = bins.iter().find(|(_, count)| {
                seen += count;
                seen >= rank
            });
            bin.map_or(max, |(value, _)| value.clamp(min, max))
        })
    }
}
