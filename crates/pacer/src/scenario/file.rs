//! Scenario files.

use super::expect::Expect;
use crate::{BudgetKind, Options, OutOfRange, time::seconds};
use serde::Deserialize;
use std::{str::FromStr, time::Duration};

/// A scenario, as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows.
    pub name: String,
    /// So many successes end it.
    pub requests: u64,
    /// Time between arrivals; zero: all at once.
    #[serde(default, with = "seconds")]
    pub interval: Duration,
    /// After so long without an answer, an attempt is given up.
    #[serde(default = "a_minute", with = "seconds")]
    pub timeout: Duration,
    /// Decides about all that is random.
    #[serde(default)]
    pub seed: u64,
    /// So many independent pacers share the service.
    #[serde(default = "one")]
    pub pacers: usize,
    /// So many connections each pacer has: the service limits each by itself.
    #[serde(default = "one")]
    pub connections: usize,
    /// So many consumers draw on each pacer.
    #[serde(default = "one")]
    pub consumers: usize,
    /// Operation classes, in turn: what each costs, as a multiple of the delay.
    #[serde(default = "one_class")]
    pub classes: Vec<f64>,
    /// At these times, in seconds, pacers are replaced by new ones that know what was remembered.
    #[serde(default)]
    pub restarts: Vec<f64>,
    /// How the service behaves.
    pub service: ServiceSpec,
    /// How that changes.
    #[serde(default, rename = "change")]
    pub changes: Vec<Change>,
    /// The pacer's options.
    #[serde(default)]
    pub pacer: Options,
    /// What must hold.
    #[serde(default)]
    pub expect: Expect,
}

/// How a service behaves.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// What one request takes when nothing else is in flight.
    #[serde(with = "seconds")]
    pub delay: Duration,
    /// Times an exponential with mean 1, as a share of the delay.
    #[serde(default)]
    pub jitter: f64,
    /// What depends on requests in flight.
    #[serde(default)]
    pub concurrency: LimitSpec,
    /// What depends on requests within the last second, rejected ones included.
    #[serde(default)]
    pub rate: LimitSpec,
    /// What it allows over a longer time.
    #[serde(default, rename = "budget")]
    pub budgets: Vec<ServiceBudget>,
    /// What it tells with each answer.
    #[serde(default)]
    pub hint: HintSpec,
}

/// What a service does when it is busy.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSpec {
    /// Beyond this, …
    pub limit: Option<u32>,
    /// … it does this.
    pub action: Action,
    /// Sent with a rejection, in seconds.
    pub retry_after: Option<f64>,
    /// The delay grows by this share for each request beyond one.
    pub scale: f64,
    /// Beyond this many requests …
    pub knee_start: u32,
    /// … the delay is multiplied by this for each one more.
    pub knee_exp: f64,
}

impl Default for LimitSpec {
    fn default() -> Self {
        Self {
            limit: None,
            action: Action::Defer,
            retry_after: None,
            scale: 0.0,
            knee_start: 0,
            knee_exp: 1.0,
        }
    }
}

/// What happens beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Rejected after one delay.
    Defer,
    /// Never answered.
    Drop,
}

/// What a service allows over a sliding window.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceBudget {
    /// What is counted.
    pub kind: BudgetKind,
    /// How much of it.
    pub limit: f64,
    /// Within this time.
    #[serde(default, with = "seconds")]
    pub window: Duration,
    /// Sent with a rejection, in seconds.
    pub retry_after: Option<f64>,
}

/// What a service tells with each answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HintSpec {
    /// How much it wants in flight.
    pub parallelism: Option<u32>,
}

/// From some time on, the service is another one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// From when on.
    #[serde(with = "seconds")]
    pub at: Duration,
    /// In seconds.
    pub delay: Option<f64>,
    /// See [`ServiceSpec::jitter`].
    pub jitter: Option<f64>,
    /// See [`ServiceSpec::concurrency`].
    pub concurrency: Option<LimitSpec>,
    /// See [`ServiceSpec::rate`].
    pub rate: Option<LimitSpec>,
    /// See [`ServiceSpec::hint`].
    pub hint: Option<HintSpec>,
}

impl Change {
    /// The service from then on.
    pub(super) fn apply(&self, service: &mut ServiceSpec) {
        if let Some(delay) = self.delay {
            service.delay = Duration::from_secs_f64(delay);
        }
        service.jitter = self.jitter.unwrap_or(service.jitter);
        replace(&mut service.concurrency, &self.concurrency);
        replace(&mut service.rate, &self.rate);
        replace(&mut service.hint, &self.hint);
    }
}

/// Puts in what is new.
fn replace<T: Clone>(old: &mut T, new: &Option<T>) {
    if let Some(new) = new {
        *old = new.clone();
    }
}

fn a_minute() -> Duration {
    Duration::from_secs(60)
}

fn one() -> usize {
    1
}

fn one_class() -> Vec<f64> {
    vec![1.0]
}

/// A file that is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It does not say what a scenario must say.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// An option of the pacer makes no sense.
    #[error("[pacer] {0}")]
    Options(#[from] OutOfRange),
    /// A number makes no sense.
    #[error("{0}")]
    Number(String),
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Scenario = toml::from_str(text)?;
        scenario.pacer.check()?;
        scenario.check()?;
        Ok(scenario)
    }
}

impl Scenario {
    fn check(&self) -> Result<(), ScenarioError> {
        let refuse = |what: &str| Err(ScenarioError::Number(what.to_owned()));
        let changed = self.changes.iter().filter_map(|change| change.delay);
        if self.requests == 0 || self.requests > 100_000_000 {
            return refuse("requests: 1 to 100000000 can be simulated");
        }
        if self.service.delay.is_zero() || changed.clone().any(|delay| !positive(delay)) {
            return refuse("delay: a service takes more than 0 seconds");
        }
        if self.timeout.is_zero() {
            return refuse("timeout: no service answers within 0 seconds");
        }
        let many = [self.pacers, self.connections, self.consumers, self.classes.len()];
        if !many.iter().all(|many| (1..=1_000).contains(many)) {
            return refuse("pacers, connections, consumers, classes: 1 to 1000 can be simulated");
        }
        if !self.classes.iter().chain(&self.restarts).all(|number| positive(*number)) {
            return refuse("classes and restarts: numbers above 0");
        }
        let limits = self.changes.iter().flat_map(|change| [&change.concurrency, &change.rate]);
        let limits = limits.flatten().chain([&self.service.concurrency, &self.service.rate]);
        if limits.into_iter().any(|spec| spec.limit == Some(0)) {
            return refuse("limit: a service that accepts nothing ends no scenario; use 1 or more");
        }
        self.expect.sound().or_else(|problem| refuse(&format!("[expect] {problem}")))
    }
}

fn positive(seconds: f64) -> bool {
    seconds > 0.0 && seconds.is_finite()
}
