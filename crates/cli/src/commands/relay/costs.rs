//! What a relay asked of a service that is paid by use.

use crate::show::{number::count, table::table};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tidegate::{Cost, relay::Counts};

/// By operation, and for how many messages.
pub struct Costs {
    operations: BTreeMap<&'static str, Cost>,
    messages: u64,
}

impl Costs {
    pub fn new(operations: BTreeMap<&'static str, Cost>, counts: &Counts) -> Self {
        Self { operations, messages: counts.delivered + counts.coalesced + counts.dead }
    }

    fn sum(&self) -> Cost {
        let add = |sum: Cost, it: &Cost| Cost {
            requests: sum.requests + it.requests,
            throttled: sum.throttled + it.throttled,
            read_units: sum.read_units + it.read_units,
            write_units: sum.write_units + it.write_units,
        };
        self.operations.values().fold(Cost::default(), add)
    }

    /// Of a number that belongs to all messages: what belongs to a thousand of them.
    fn per_thousand(&self, of_all: f64) -> Option<f64> {
        (self.messages > 0).then(|| of_all * 1_000.0 / self.messages as f64)
    }

    pub fn json(&self) -> Value {
        let sum = self.sum();
        json!({
            "operations": self.operations,
            "per_thousand_messages": {
                "requests": self.per_thousand(sum.requests as f64),
                "read_units": self.per_thousand(sum.read_units),
                "write_units": self.per_thousand(sum.write_units),
            },
        })
    }

    pub fn text(&self) -> String {
        let row = |name: &str, cost: &Cost| {
            [
                name.to_owned(),
                count(cost.requests),
                count(cost.throttled),
                units(cost.read_units),
                units(cost.write_units),
            ]
        };
        let mut rows: Vec<_> = self.operations.iter().map(|(name, it)| row(name, it)).collect();
        let sum = self.sum();
        rows.push(row("in all", &sum));
        let per = |of_all: f64| self.per_thousand(of_all).map(units).unwrap_or_default();
        if self.messages > 0 {
            let name = "per 1,000 messages".to_owned();
            let throttled = per(sum.throttled as f64);
            let units = (per(sum.read_units), per(sum.write_units));
            rows.push([name, per(sum.requests as f64), throttled, units.0, units.1]);
        }
        let headings = ["operation", "requests", "throttled", "read units", "write units"];
        table(headings, 1, rows).trim_end().to_owned()
    }
}

fn units(units: f64) -> String {
    format!("{units:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(delivered: u64) -> Costs {
        let scan = Cost { requests: 9, throttled: 1, read_units: 4.5, write_units: 0.0 };
        let mark = Cost { requests: 1, throttled: 0, read_units: 0.0, write_units: 30.0 };
        let operations = BTreeMap::from([("Scan", scan), ("TransactWriteItems", mark)]);
        Costs::new(operations, &Counts { delivered, ..Counts::default() })
    }

    #[test]
    fn costs_are_told_by_operation_and_for_a_thousand_messages() {
        let json = costs(20).json();
        assert_eq!(json["operations"]["Scan"]["requests"], 9);
        let per = &json["per_thousand_messages"];
        assert_eq!((&per["requests"], &per["write_units"]), (&json!(500.0), &json!(1_500.0)));
        let text = costs(20).text();
        let line = |name: &str| text.lines().find(|it| it.contains(name)).unwrap().to_owned();
        let numbers = |name: &str| {
            let line = line(name).replace(name, "");
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(numbers("in all"), ["10", "1", "4.5", "30.0"]);
        assert_eq!(numbers("per 1,000 messages"), ["500.0", "50.0", "225.0", "1500.0"]);
    }

    #[test]
    fn without_messages_there_is_no_cost_for_a_thousand() {
        assert_eq!(costs(0).json()["per_thousand_messages"]["requests"], Value::Null);
        assert!(!costs(0).text().contains("per 1,000"));
    }
}
