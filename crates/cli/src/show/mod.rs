//! How things look on a terminal. Everything here makes text; nothing here prints, but for the bar.

pub mod failures;
pub mod load;
pub mod number;
pub mod pace;
pub mod plot;
pub mod progress;
pub mod shadow;
pub mod speed;
pub mod status;
pub mod svg;
pub mod table;

use tidegate::Aggregates;

/// The aggregates of a batch: a table of its numbers, its categories, its distributions.
pub fn aggregates(aggregates: &Aggregates, width: usize) -> String {
    let summary = aggregates.summary();
    let parts = [
        table::numbers(&summary),
        table::categories(&summary, width),
        plot::distributions(&aggregates.numbers, width),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}
