//! One checker per law. Each looks at the whole history and says what broke.

mod attempts;
mod clean_stop;
mod drained;
mod duplicates;
mod isolation;
mod nothing_vanishes;
mod order;
mod went_back;

use super::{End, Scenario, view::View};

type Checker = fn(&View<'_>, &End) -> Result<(), String>;

const ORDER: &str = "law 5, order per key";

/// Every checker, with its law.
const CHECKERS: [(&str, Checker); 7] = [
    ("law 6, nothing vanishes", nothing_vanishes::check),
    ("law 6, the drain delivers what can be delivered", drained::check),
    (ORDER, order::check),
    ("duplicates only with an excuse", duplicates::check),
    ("law 8, only an item's own failure uses up an attempt", attempts::check),
    ("law 11, clean stop", clean_stop::check),
    ("law 7, isolation", isolation::check),
];

/// Runs every checker.
pub fn check_all(scenario: &Scenario, end: &End) -> Result<(), String> {
    if let Some(failure) = &end.failure {
        return Err(failure.clone());
    }
    if !scenario.go_backs.is_empty() {
        // Ids mean other messages before and after: the other checkers would mix them up.
        return went_back::check(scenario, end).map_err(|broken| format!("law 16: {broken}"));
    }
    let view = View::new(scenario, &end.history);
    let ordered = scenario.index.as_ref().is_none_or(|index| index.keeps_order());
    let broken = |(law, check): &(&str, Checker)| {
        if !ordered && *law == ORDER {
            return None;
        }
        check(&view, end).err().map(|broken| format!("{law}: {broken}"))
    };
    let all: Vec<String> = CHECKERS.iter().filter_map(broken).collect();
    if all.is_empty() { Ok(()) } else { Err(all.join("\n  ")) }
}

/// Fails with a message unless something holds.
fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}
