//! One checker per law. Each looks at the whole history and says what broke.

mod attempts;
mod bounded;
mod clean_stop;
mod derived_counts;
mod durable;
mod fenced;
mod isolation;
mod lost_work;
mod nothing_vanishes;
mod per_batch;
mod same_bits;
mod store_clock;

use crate::{End, Plan};

type Checker = fn(&Plan, &End) -> Result<(), String>;

/// Every checker, with its law.
const CHECKERS: [(&str, Checker); 12] = [
    ("law 1, per batch, not per item", per_batch::check),
    ("law 2, settled means durable", durable::check),
    ("law 3, fenced", fenced::check),
    ("law 4, same seed, same bits", same_bits::check),
    ("law 6, nothing vanishes", nothing_vanishes::check),
    ("law 7, isolation", isolation::check),
    ("law 7, runs that end their workers", lost_work::check),
    ("law 8, only an item's own failure uses up an attempt", attempts::check),
    ("law 10, bounded", bounded::check),
    ("law 11, clean stop", clean_stop::check),
    ("law 12, the database's clock", store_clock::check),
    ("law 13, derived counts", derived_counts::check),
];

/// Runs every checker.
pub fn check_all(plan: &Plan, end: &End) -> Result<(), String> {
    CHECKERS
        .iter()
        .try_for_each(|(law, check)| check(plan, end).map_err(|broken| format!("{law}: {broken}")))
}

/// Fails with a message unless something holds.
fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}
