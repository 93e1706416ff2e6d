//! Tables: numbers, categories with bars, and lists.

use super::number::{count, figure, percent, with_margin};
use crate::out;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::collections::BTreeMap;
use tidegate::{Summary, aggregate::NumberSummary};

/// More values of a category than this are summed up.
const MOST_VALUES: usize = 12;
const BAR: usize = 30;

/// A table with these headings; all columns but the first `words` are numbers.
pub fn table<const N: usize>(headings: [&str; N], words: usize, rows: Vec<[String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings);
    table.add_rows(rows.iter().map(|row| row.each_ref().map(|cell| out::harmless(cell))));
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if at >= words {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Colors come last: the table would count them as columns.
    let styled = |(at, line): (usize, String)| match at {
        0 => out::faint(line.trim_end()) + "\n",
        _ => format!("{}\n", line.trim_end()),
    };
    table.lines().enumerate().map(styled).collect()
}

/// One row per named number.
pub fn numbers(summary: &Summary) -> String {
    if summary.numbers.is_empty() {
        return String::new();
    }
    let headings =
        ["", "mean ± 95 %", "sd", "min", "5 %", "25 %", "50 %", "75 %", "95 %", "max", "count"];
    let rows = summary.numbers.iter().map(|(name, summary)| number(name, summary));
    table(headings, 1, rows.collect())
}

fn number(name: &str, number: &NumberSummary) -> [String; 11] {
    [
        name.to_string(),
        with_margin(number.mean, (number.ci95.1 - number.ci95.0) / 2.0),
        figure(number.sd),
        figure(number.min),
        figure(number.q05),
        figure(number.q25),
        figure(number.q50),
        figure(number.q75),
        figure(number.q95),
        figure(number.max),
        count(number.count),
    ]
}

/// The values of each category with their shares.
pub fn categories(summary: &Summary, width: usize) -> String {
    let blocks = summary.categories.iter().map(|(name, values)| category(name, values, width));
    blocks.collect::<Vec<_>>().join("\n")
}

fn category(name: &str, values: &BTreeMap<Box<str>, u64>, width: usize) -> String {
    let all: u64 = values.values().sum();
    let sorted = by_count(values);
    let shown = &sorted[..sorted.len().min(MOST_VALUES)];
    let longest = shown.iter().map(|(value, _)| console::measure_text_width(value)).max();
    let label = longest.unwrap_or(0).min(width / 3);
    let most = shown.first().map_or(1, |(_, count)| *count);
    let mut text = format!("{}\n", out::strong(name));
    for (value, number) in shown {
        let value = pad(value, label);
        let bar = bar(*number as f64 / most as f64);
        let share = percent(*number, all);
        text += &format!("  {value}  {share:>7}  {bar:BAR$}  {}\n", count(*number));
    }
    if sorted.len() > shown.len() {
        let rest: u64 = sorted[shown.len()..].iter().map(|(_, count)| count).sum();
        let others = sorted.len() - shown.len();
        text += &format!("  … and {others} others, {}\n", percent(rest, all));
    }
    text
}

/// The most frequent first; of equal ones, by name.
pub fn by_count(values: &BTreeMap<Box<str>, u64>) -> Vec<(&str, u64)> {
    let mut sorted: Vec<_> = values.iter().map(|(value, count)| (&**value, *count)).collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted
}

/// A name cut or filled to a width.
pub fn pad(name: &str, width: usize) -> String {
    console::pad_str(name, width, console::Alignment::Left, Some("…")).into_owned()
}

/// A bar of a share, in eighths of a column.
fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(1.0).chars().count(), BAR);
        assert_eq!(bar(0.5), "█".repeat(BAR / 2));
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.0 / (BAR as f64 * 8.0)), "▏");
    }

    #[test]
    fn what_is_in_a_cell_stays_there() {
        let text = table(["key"], 1, vec![["a\u{1b}[2J\nb".to_owned()]]);
        assert_eq!(text, "key\na\\u{1b}[2J\\nb\n");
    }

    #[test]
    fn values_that_are_too_many_are_summed_up() {
        let values = (0..20u64).map(|i| (format!("v{i:02}").into(), 1 + i)).collect();
        let text = category("kind", &values, 80);
        assert!(text.starts_with("kind\n  v19"), "{text}");
        assert!(text.ends_with("… and 8 others, 17.1 %\n"), "{text}");
    }
}
