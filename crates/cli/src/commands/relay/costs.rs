//! What a relay asked of a service that is paid by use.

use crate::show::{
    number::{count, span},
    table::table,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, convert::Infallible, future::pending, time::Duration};
use tidegate::{Cost, relay::Counts};
use tokio::time::{MissedTickBehavior, interval};

/// How often a relay says what it costs.
pub const TELL_EVERY: Duration = Duration::from_secs(60);

/// Says what was asked, as long as the relay works: of one that runs for weeks nobody waits for the end. `used` gives
/// nothing if the service is not paid by use.
pub async fn tell(
    every: Duration,
    used: impl Fn() -> Option<Costs>,
    say: impl Fn(String),
) -> Infallible {
    let Some(mut before) = used() else { return pending().await };
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(now) = used() else { return pending().await };
        say(now.line(&before, every));
        before = now;
    }
}

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

    /// What was asked since then, and what a thousand messages have cost so far.
    fn line(&self, before: &Self, lasts: Duration) -> String {
        let (now, then) = (self.sum(), before.sum());
        let mut line = format!(
            "in {}: {} requests, {} throttled, {} read units, {} write units",
            span(lasts),
            count(now.requests - then.requests),
            count(now.throttled - then.throttled),
            units(now.read_units - then.read_units),
            units(now.write_units - then.write_units),
        );
        let per = |of_all| self.per_thousand(of_all).map(units);
        if let Some((read, write)) = per(now.read_units).zip(per(now.write_units)) {
            line += &format!("; per 1,000 messages so far: {read} read units, {write} write units");
        }
        line
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

    #[tokio::test]
    async fn a_relay_that_goes_on_tells_what_it_costs() {
        let every = Duration::from_millis(2);
        let asked = std::cell::Cell::new(0);
        let used = || {
            asked.set(asked.get() + 1);
            let scan = Cost { requests: 30 * asked.get(), read_units: 15.0, ..Cost::default() };
            Some(Costs::new(BTreeMap::from([("Scan", scan)]), &Counts::default()))
        };
        let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
        let told = tell(every, used, |line| say.send(line).unwrap());
        let two = async { [said.recv().await.unwrap(), said.recv().await.unwrap()] };
        let two = tokio::select! { two = two => two, never = told => match never {} };
        let line = "in 2 ms: 30 requests, 0 throttled, 0.0 read units, 0.0 write units";
        assert_eq!(two, [line, line]);
        let line = costs(20).line(&costs(0), every);
        assert!(line.ends_with("so far: 225.0 read units, 1500.0 write units"), "{line}");
    }
}
