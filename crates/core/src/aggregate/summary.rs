//! What people read of the aggregates.

use super::{Aggregates, Series};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The aggregates of a batch, evaluated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many successful runs it covers.
    pub runs: u64,
    /// By name.
    pub numbers: BTreeMap<Box<str>, NumberSummary>,
    /// By name, then by value: how many runs.
    pub categories: BTreeMap<Box<str>, BTreeMap<Box<str>, u64>>,
}

/// One named number, evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberSummary {
    /// How many values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their sample standard deviation.
    pub sd: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// 5 % of the values are at most this.
    pub q05: f64,
    /// 25 % of the values are at most this.
    pub q25: f64,
    /// The median.
    pub q50: f64,
    /// 75 % of the values are at most this.
    pub q75: f64,
    /// 95 % of the values are at most this.
    pub q95: f64,
    /// The mean's 95 % confidence interval (normal approximation).
    pub ci95: (f64, f64),
}

/// The 97.5 % quantile of the normal distribution.
const Z95: f64 = 1.959_963_984_540_054;

impl Summary {
    /// Evaluates aggregates.
    pub fn of(aggregates: &Aggregates) -> Self {
        Self {
            runs: aggregates.runs,
            numbers: aggregates
                .numbers
                .iter()
                .map(|(name, series)| (name.clone(), series.into()))
                .collect(),
            categories: aggregates
                .categories
                .iter()
                .map(|(name, counts)| (name.clone(), (**counts).clone()))
                .collect(),
        }
    }
}

impl From<&Series> for NumberSummary {
    fn from(series: &Series) -> Self {
        let (mean, sd) = (series.mean(), series.standard_deviation());
        let (min, max) = series.extremes().unwrap_or((f64::NAN, f64::NAN));
        let [q05, q25, q50, q75, q95] = series.quantiles([0.05, 0.25, 0.5, 0.75, 0.95]);
        let margin = Z95 * sd / (series.count() as f64).sqrt();
        let ci95 = (mean - margin, mean + margin);
        Self { count: series.count(), mean, sd, min, max, q05, q25, q50, q75, q95, ci95 }
    }
}
