//! Writing scenario files.

use super::{LimitSpec, Scenario};
use std::fmt;
use toml::{Table, Value};

/// What every scenario must say. All else that is as here need not be said.
const LEAST: &str = "name = \"\"\nrequests = 1\n[service]\ndelay = 1.0";
/// The keys in it that are always said.
const ALWAYS: [&str; 3] = ["name", "requests", "delay"];

/// A file that says the same, and nothing that goes without saying.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least: Scenario = LEAST.parse().expect("it says what a scenario must say");
        let mut table = table(self);
        shorten(&mut table, &self::table(&least));
        let usual = self::table(&LimitSpec::default());
        let changes = table.get_mut("change").and_then(Value::as_array_mut);
        for change in changes.into_iter().flatten().filter_map(Value::as_table_mut) {
            for key in ["concurrency", "rate"] {
                // An empty table stays: it lifts a limit.
                if let Some(limit) = change.get_mut(key).and_then(Value::as_table_mut) {
                    shorten(limit, &usual);
                }
            }
        }
        f.write_str(&toml::to_string(&table).expect("tables can be written"))
    }
}

fn table(of: &impl serde::Serialize) -> Table {
    Table::try_from(of).expect("it consists of numbers, texts and tables")
}

/// Removes what is as usual.
fn shorten(table: &mut Table, usual: &Table) {
    table.retain(|key, value| match (value, usual.get(key)) {
        (Value::Table(value), Some(Value::Table(usual))) => {
            shorten(value, usual);
            !value.is_empty()
        }
        (value, usual) => ALWAYS.contains(&key) || usual != Some(value),
    });
}
