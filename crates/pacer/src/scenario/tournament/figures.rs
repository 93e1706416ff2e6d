//! What many runs have in common.

use super::Played;
use serde::Serialize;

/// The figures of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// How many runs.
    pub services: usize,
    /// Half of them are at least so efficient, …
    pub median: f64,
    /// … nine of ten so efficient, …
    pub worst_tenth: f64,
    /// … and all of them so efficient.
    pub worst: f64,
    /// Nine of ten lose at most this share of what they send.
    pub lost_p90: f64,
    /// So many did not finish.
    pub unfinished: usize,
    /// Requests that were sent inside a Retry-After.
    pub inside_retry_after: u64,
    /// The share of services that were in full use soon after their last change.
    pub soon_in_use: Option<f64>,
}

impl Figures {
    /// Of these runs; none, if there are none.
    pub fn of<'a>(played: impl IntoIterator<Item = &'a Played>) -> Option<Self> {
        let played: Vec<&Played> = played.into_iter().collect();
        let efficiency = sorted(played.iter().map(|one| one.efficiency));
        let lost = sorted(played.iter().map(|one| one.lost));
        let soon = played.iter().filter_map(|one| one.soon_in_use);
        let soon: Vec<f64> = soon.map(|soon| f64::from(u8::from(soon))).collect();
        let in_use = soon.iter().sum::<f64>() / soon.len() as f64;
        Some(Self {
            services: played.len(),
            median: quantile(&efficiency, 0.5)?,
            worst_tenth: quantile(&efficiency, 0.1)?,
            worst: quantile(&efficiency, 0.0)?,
            lost_p90: quantile(&lost, 0.9)?,
            unfinished: efficiency.iter().filter(|share| **share == 0.0).count(),
            inside_retry_after: played.iter().map(|one| one.inside_retry_after).sum(),
            soon_in_use: (!soon.is_empty()).then_some(in_use),
        })
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which this share of the others is.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().checked_sub(1)?)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_values_is_below_the_worst_tenth() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let at = |share| quantile(&values, share);
        assert_eq!([at(0.0), at(0.1), at(0.5), at(1.0)], [0.0, 10.0, 50.0, 99.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
