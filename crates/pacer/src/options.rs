//! What a pacer can be told, with the ranges that make sense.

use crate::time::seconds;
use serde::{Deserialize, Serialize};
use std::{fmt, ops::RangeInclusive, str::FromStr, time::Duration};

/// How to pace. The names and defaults of the first part are those of the design that this AIMD
/// comes from; the second part is what was added to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Whether to adapt at all; otherwise the level is fixed at `max`.
    pub enabled: bool,
    /// Never more in flight than this, on one connection.
    pub max: u32,
    /// Without fast start, the first level as a share of `max`.
    pub initial_parallelism_factor: f64,
    /// Never fewer in flight than this.
    pub min_parallelism: u32,
    /// By how much the level grows at a time.
    pub increase_rate: u32,
    /// What is left of the level after a throttle.
    pub decrease_factor: f64,
    /// So many successes come before an increase …
    pub stabilization_batches: u32,
    /// … and so much time after the last one.
    #[serde(with = "seconds")]
    pub min_increase_interval: Duration,
    /// Growth is this much faster below the last level known to be good.
    pub recovery_multiplier: f64,
    /// How long such a level is remembered.
    #[serde(with = "seconds")]
    pub last_known_good_ttl: Duration,
    /// After so long without a request, all is learned again.
    #[serde(with = "seconds")]
    pub idle_reset_period: Duration,

    /// What decides about the level.
    pub policy: Policy,
    /// The first level; without it, fast start begins at `min_parallelism`.
    pub start: Option<u32>,
    /// What the service is known to allow, per connection.
    pub budgets: Vec<Budget>,
    /// Requests per second that the service is known to allow, per connection.
    pub rate: Option<f64>,
    /// How long callers wait when every connection is inside a Retry-After, before they are told.
    #[serde(with = "seconds")]
    pub tolerance: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: true,
            max: 52,
            initial_parallelism_factor: 0.5,
            min_parallelism: 1,
            increase_rate: 2,
            decrease_factor: 0.5,
            stabilization_batches: 3,
            min_increase_interval: Duration::from_secs(5),
            recovery_multiplier: 2.0,
            last_known_good_ttl: Duration::from_secs(300),
            idle_reset_period: Duration::from_secs(300),
            policy: Policy::Full,
            start: None,
            budgets: Vec::new(),
            rate: None,
            tolerance: Duration::from_secs(600),
        }
    }
}

/// What decides about the level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// Always this many in flight, whatever the service answers.
    Fixed(u32),
    /// Additive increase, multiplicative decrease, and nothing else.
    Seed,
    /// All of it.
    #[default]
    Full,
}

/// What a service allows over a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What is counted.
    pub kind: BudgetKind,
    /// How much of it.
    pub limit: f64,
    /// Within this time; `concurrent` needs none.
    #[serde(default, with = "seconds")]
    pub window: Duration,
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Requests, whatever becomes of them.
    Requests,
    /// The time that requests take.
    ExecutionSeconds,
    /// Requests at the same time.
    Concurrent,
}

/// An option outside of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} = {value} is out of range: {range}")]
pub struct OutOfRange {
    name: &'static str,
    value: String,
    range: String,
}

impl Options {
    /// Refuses options that make no sense.
    pub fn check(&self) -> Result<(), OutOfRange> {
        within("max", self.max, 1..=100_000)?;
        within("initial_parallelism_factor", self.initial_parallelism_factor, 0.1..=1.0)?;
        within("min_parallelism", self.min_parallelism, 1..=self.max)?;
        within("increase_rate", self.increase_rate, 1..=10_000)?;
        within("decrease_factor", self.decrease_factor, 0.1..=0.9)?;
        within("stabilization_batches", self.stabilization_batches, 1..=1_000_000)?;
        within_a_day("min_increase_interval", self.min_increase_interval)?;
        within("recovery_multiplier", self.recovery_multiplier, 1.0..=100.0)?;
        within_a_day("last_known_good_ttl", self.last_known_good_ttl)?;
        within_a_day("idle_reset_period", self.idle_reset_period)?;
        within_a_day("tolerance", self.tolerance)?;
        if let Some(start) = self.start {
            within("start", start, self.min_parallelism..=self.max)?;
        }
        if let Policy::Fixed(level) = self.policy {
            within("policy fixed:N", level, 1..=100_000)?;
        }
        if let Some(rate) = self.rate {
            within("rate", rate, 0.001..=1e9)?;
        }
        self.budgets.iter().try_for_each(Budget::check)
    }

    /// The level to begin with.
    pub(crate) fn first_level(&self) -> u32 {
        let level = match (self.policy, self.start) {
            (Policy::Fixed(level), _) => return level,
            _ if !self.enabled => self.max,
            (_, Some(start)) => start,
            (Policy::Full, None) => self.min_parallelism,
            (Policy::Seed, None) => {
                (f64::from(self.max) * self.initial_parallelism_factor).floor() as u32
            }
        };
        level.clamp(self.min_parallelism, self.max)
    }

    /// Whether answers change the level.
    pub(crate) fn adapts(&self) -> bool {
        self.enabled && !matches!(self.policy, Policy::Fixed(_))
    }

    /// Whether everything beyond AIMD is asked for.
    pub(crate) fn is_full(&self) -> bool {
        self.enabled && self.policy == Policy::Full
    }
}

impl Budget {
    fn check(&self) -> Result<(), OutOfRange> {
        within("budget limit", self.limit, 0.001..=1e12)?;
        if self.kind == BudgetKind::Concurrent {
            return within("budget limit of concurrent requests", self.limit, 1.0..=1e6);
        }
        within("budget window", self.window.as_secs_f64(), 0.001..=86_400.0)
    }
}

pub(crate) fn within<T: PartialOrd + fmt::Display>(
    name: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), OutOfRange> {
    if range.contains(&value) {
        return Ok(());
    }
    let range = format!("{} to {}", range.start(), range.end());
    Err(OutOfRange { name, value: value.to_string(), range })
}

fn within_a_day(name: &'static str, value: Duration) -> Result<(), OutOfRange> {
    within(name, value.as_secs_f64(), 0.0..=86_400.0)
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "seed" => Ok(Policy::Seed),
            "full" => Ok(Policy::Full),
            _ => text
                .strip_prefix("fixed:")
                .and_then(|level| level.parse().ok())
                .filter(|level| *level > 0)
                .map(Policy::Fixed)
                .ok_or_else(|| format!("`{text}` is none of full, seed, fixed:N (N above 0)")),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Fixed(level) => write!(f, "fixed:{level}"),
            Policy::Seed => f.write_str("seed"),
            Policy::Full => f.write_str("full"),
        }
    }
}

impl TryFrom<String> for Policy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> String {
        policy.to_string()
    }
}

impl fmt::Display for BudgetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BudgetKind::Requests => "requests",
            BudgetKind::ExecutionSeconds => "execution seconds",
            BudgetKind::Concurrent => "concurrent requests",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_is_refused_with_the_range() {
        let refused = |options: Options| options.check().unwrap_err().to_string();
        let with = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options
        };
        assert_eq!(Options::default().check(), Ok(()));
        assert_eq!(
            refused(with(|o| o.decrease_factor = 0.95)),
            "decrease_factor = 0.95 is out of range: 0.1 to 0.9"
        );
        assert_eq!(
            refused(with(|o| o.initial_parallelism_factor = 0.0)),
            "initial_parallelism_factor = 0 is out of range: 0.1 to 1"
        );
        assert!(refused(with(|o| o.min_parallelism = 53)).ends_with("1 to 52"));
        assert!(refused(with(|o| o.max = 0)).contains("max = 0"));
        assert!(refused(with(|o| o.increase_rate = 0)).contains("increase_rate"));
        assert!(refused(with(|o| o.stabilization_batches = 0)).contains("stabilization"));
        assert!(refused(with(|o| o.recovery_multiplier = f64::NAN)).contains("recovery"));
        assert!(refused(with(|o| o.start = Some(0))).contains("start"));
        assert!(refused(with(|o| o.rate = Some(0.0))).contains("rate"));
        let none = Budget { kind: BudgetKind::Requests, limit: 5.0, window: Duration::ZERO };
        assert!(none.check().unwrap_err().to_string().contains("window"));
    }

    #[test]
    fn policies_are_read_as_they_are_written() {
        for policy in [Policy::Fixed(52), Policy::Seed, Policy::Full] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("fixed:0".parse::<Policy>().unwrap_err().contains("fixed:N"));
    }

    #[test]
    fn the_first_level_follows_the_policy() {
        let with = |policy, start| Options { policy, start, max: 52, ..Options::default() };
        assert_eq!(with(Policy::Seed, None).first_level(), 26);
        assert_eq!(with(Policy::Full, None).first_level(), 1);
        assert_eq!(with(Policy::Full, Some(8)).first_level(), 8);
        assert_eq!(with(Policy::Fixed(99), Some(8)).first_level(), 99);
        let disabled = Options { enabled: false, ..Options::default() };
        assert_eq!(disabled.first_level(), 52);
    }
}
