//! Scenario files.

use super::expect::Expect;
use crate::{BudgetKind, Options, time::seconds};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A scenario, as its file says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// What one request takes when nothing else is in flight.
    #[serde(with = "seconds")]
    pub delay: Duration,
    /// Times an exponential with mean 1, as a share of the delay.
    #[serde(default)]
    pub jitter: f64,
    /// The time of a request on its way to the service, and of its answer on the way back. Part of the
    /// round trip; the service is not busy with the request meanwhile.
    #[serde(default, with = "seconds")]
    pub latency: Duration,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSpec {
    /// Beyond this, … 0 is an outage: the service accepts nothing, until a change ends that.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Rejected after one delay.
    Defer,
    /// Never answered.
    Drop,
}

/// What a service allows over a sliding window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HintSpec {
    /// How much it wants in flight.
    pub parallelism: Option<u32>,
}

/// From some time on, the service is another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl Scenario {
    /// The changes in the order of their times.
    pub(super) fn changes_in_time(&self) -> impl Iterator<Item = &Change> {
        let mut changes: Vec<&Change> = self.changes.iter().collect();
        changes.sort_by_key(|change| change.at);
        changes.into_iter()
    }
}

impl ServiceSpec {
    /// Whether this is an outage.
    pub(super) fn accepts_nothing(&self) -> bool {
        self.concurrency.limit == Some(0) || self.rate.limit == Some(0)
    }
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
