//! What a scenario file may say.

use super::file::Scenario;
use crate::OutOfRange;
use std::str::FromStr;

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
        if self.service.latency * 2 >= self.timeout {
            return refuse("latency: no answer comes within the timeout; use less than half of it");
        }
        if self.accepts_nothing_at_last() {
            return refuse(
                "limit: with 0, nothing is ever accepted again; end the outage with a [[change]]",
            );
        }
        self.expect.sound().or_else(|problem| refuse(&format!("[expect] {problem}")))
    }

    /// Whether the last state of the service is an outage.
    fn accepts_nothing_at_last(&self) -> bool {
        let mut service = self.service.clone();
        self.changes_in_time().for_each(|change| change.apply(&mut service));
        service.accepts_nothing()
    }
}

fn positive(seconds: f64) -> bool {
    seconds > 0.0 && seconds.is_finite()
}
