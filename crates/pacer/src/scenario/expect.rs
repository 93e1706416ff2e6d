//! What must hold.

use super::report::{KEYS, Report};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Figures with what they must be: a number, or a lowest and a highest one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expect(BTreeMap<String, Bounds>);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Bounds {
    Exactly(f64),
    Within([f64; 2]),
}

/// An expectation that was not met.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    /// Which figure.
    pub key: String,
    /// What it is.
    pub value: f64,
    /// What it should be at least …
    pub low: f64,
    /// … and at most.
    pub high: f64,
}

impl Expect {
    /// Refuses keys that no report has, and bounds that nothing can meet.
    pub(super) fn sound(&self) -> Result<(), String> {
        for (key, bounds) in &self.0 {
            if !KEYS.contains(&key.as_str()) {
                return Err(format!("`{key}` is none of {}", KEYS.join(", ")));
            }
            if let Bounds::Within([low, high]) = bounds
                && low > high
            {
                return Err(format!("`{key}`: nothing is at least {low} and at most {high}"));
            }
        }
        Ok(())
    }

    /// How many expectations there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares a report with what is expected of it.
    pub fn check(&self, report: &Report) -> Result<(), Vec<Unmet>> {
        let unmet = self.0.iter().filter_map(|(key, bounds)| {
            let (low, high) = match *bounds {
                Bounds::Exactly(value) => (value - 1e-9, value + 1e-9),
                Bounds::Within([low, high]) => (low, high),
            };
            let value = report.get(key).unwrap_or(f64::NAN);
            let met = value >= low && value <= high;
            (!met).then(|| Unmet { key: key.clone(), value, low, high })
        });
        let unmet: Vec<Unmet> = unmet.collect();
        if unmet.is_empty() { Ok(()) } else { Err(unmet) }
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, low, high } = self;
        write!(f, "{key} is {value:.4}, expected {low:.4} to {high:.4}")
    }
}
