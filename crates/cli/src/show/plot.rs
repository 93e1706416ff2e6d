//! Distributions as lines of blocks. Numbers named `points/Red` and `points/Blue` share a scale, so
//! that they can be compared.

use super::{number::figure, table::pad};
use crate::out;
use std::collections::BTreeMap;
use tidegate::aggregate::Series;

/// From nothing to a full column.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A wider plot says no more.
const WIDEST: usize = 64;
/// More bins show noise.
const MOST_BINS: usize = 32;
/// More distributions than this are not drawn.
const MOST: usize = 40;

/// All distributions, by group.
pub fn distributions(numbers: &BTreeMap<Box<str>, Series>, width: usize) -> String {
    let mut text = Vec::new();
    let mut left = MOST;
    for group in groups(numbers) {
        if group.members.len() > left {
            text.push("… more distributions are in the table above\n".to_owned());
            break;
        }
        left -= group.members.len();
        text.extend(group.draw(width));
    }
    text.join("\n")
}

struct Group<'a> {
    name: &'a str,
    members: Vec<(&'a str, &'a Series)>,
}

/// Groups by what stands before the first slash.
fn groups(numbers: &BTreeMap<Box<str>, Series>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (name, series) in numbers {
        let (name, member) = name.split_once('/').unwrap_or((name, ""));
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.members.push((member, series)),
            None => groups.push(Group { name, members: vec![(member, series)] }),
        }
    }
    groups
}

impl Group<'_> {
    /// One line per member and one for the scale; nothing if there is only one value.
    fn draw(&self, width: usize) -> Option<String> {
        let longest = self.members.iter().map(|(name, _)| console::measure_text_width(name)).max();
        let label = longest.unwrap_or(0).min(width / 3);
        let columns = width.saturating_sub(label + 4).clamp(10, WIDEST);
        let scale = Scale::over(&self.members, columns)?;
        let shares: Vec<_> = self.members.iter().map(|(_, series)| scale.shares(series)).collect();
        let most = shares.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
        let mut text = format!("{}\n", out::strong(self.name));
        for ((name, _), shares) in self.members.iter().zip(&shares) {
            text +=
                format!("  {}  {}", pad(name, label), line(shares, most, scale.repeat)).trim_end();
            text += "\n";
        }
        let axis = scale.axis();
        text += &format!("  {}  {}\n", pad("", label), out::faint(&axis));
        Some(text)
    }
}

fn line(shares: &[f64], most: f64, repeat: usize) -> String {
    let block = |share: &f64| BLOCKS[(share / most * 8.0).ceil().min(8.0) as usize];
    shares.iter().flat_map(|share| std::iter::repeat_n(block(share), repeat)).collect()
}

/// Which value belongs to which column.
#[derive(Debug, PartialEq)]
struct Scale {
    low: f64,
    high: f64,
    /// How much one column covers.
    step: f64,
    columns: usize,
    /// Columns of few values are drawn several times.
    repeat: usize,
}

impl Scale {
    fn over(members: &[(&str, &Series)], columns: usize) -> Option<Self> {
        let extremes = || members.iter().filter_map(|(_, series)| series.extremes());
        let low = extremes().map(|(low, _)| low).fold(f64::INFINITY, f64::min);
        let high = extremes().map(|(_, high)| high).fold(f64::NEG_INFINITY, f64::max);
        let span = high - low;
        if !(span.is_finite() && span > 0.0) {
            return None;
        }
        let whole = members.iter().all(|(_, series)| is_whole(series));
        Some(match whole {
            true => Self::of_whole(low, high, columns),
            false => {
                let bins = columns.min(MOST_BINS);
                let step = span / bins as f64;
                Self { low, high, step, columns: bins, repeat: columns / bins }
            }
        })
    }

    /// Every column covers the same number of whole numbers: otherwise some would stand out.
    fn of_whole(low: f64, high: f64, most: usize) -> Self {
        let values = high - low + 1.0;
        let step = (values / most.min(MOST_BINS) as f64).ceil();
        let columns = (values / step).ceil() as usize;
        Self { low, high, step, columns, repeat: (most / columns).max(1) }
    }

    /// The share of a series in each column.
    fn shares(&self, series: &Series) -> Vec<f64> {
        let mut shares = vec![0.0; self.columns];
        for (value, count) in series.bins() {
            let column = ((value - self.low) / self.step).max(0.0) as usize;
            shares[column.min(self.columns - 1)] += count as f64 / series.count() as f64;
        }
        shares
    }

    fn axis(&self) -> String {
        let (low, high) = (figure(self.low), figure(self.high));
        let width = (self.columns * self.repeat).saturating_sub(low.chars().count());
        format!("{low}{high:>width$}")
    }
}

fn is_whole(series: &Series) -> bool {
    series.bins().iter().all(|(value, _)| value.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: impl IntoIterator<Item = f64>) -> Series {
        let mut series = Series::default();
        values.into_iter().for_each(|value| series.add(value));
        series
    }

    #[test]
    fn members_of_a_group_share_a_scale() {
        let numbers = BTreeMap::from([
            ("points/Blue".into(), series([0.0, 1.0, 1.0, 2.0])),
            ("points/Red".into(), series([2.0, 3.0, 3.0, 3.0])),
        ]);
        insta::assert_snapshot!(distributions(&numbers, 20), @r"
        points
          Blue  ▃▃▃▆▆▆▃▃▃
          Red         ▃▃▃███
                0          3
        ");
    }

    #[test]
    fn columns_cover_equally_many_whole_numbers() {
        let scale = Scale::of_whole(1.0, 100.0, 64);
        assert_eq!((scale.step, scale.columns, scale.repeat), (4.0, 25, 2));
    }

    #[test]
    fn a_single_value_has_no_distribution() {
        let numbers = BTreeMap::from([("x".into(), series([5.0, 5.0]))]);
        assert_eq!(distributions(&numbers, 80), "");
    }

    #[test]
    fn fractions_fill_the_width() {
        let numbers = BTreeMap::from([("x".into(), series((0..1000).map(|i| f64::from(i) / 7.0)))]);
        let text = distributions(&numbers, 80);
        assert_eq!(text.lines().nth(1).unwrap().trim().chars().count(), WIDEST, "{text}");
    }
}
