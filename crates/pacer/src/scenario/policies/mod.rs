//! Policies to compare the pacer with. They live here, not in the pacer: nobody should use them.

mod gradient2;
mod informed;
mod vector;
mod vegas;

use super::Scenario;
use crate::{Options, Outcome, Policy, Time};
use serde::{Serialize, Serializer};
use std::{fmt, str::FromStr, time::Duration};

/// Any policy that a scenario can be run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyPolicy {
    /// One of the pacer's.
    Pacer(Policy),
    /// Adaptive request concurrency as in Vector: AIMD by round trips, × 0.9.
    Vector,
    /// Netflix's Gradient2, which here also takes × 0.9 for each window with a loss.
    Gradient2,
    /// Netflix's Vegas.
    Vegas,
    /// Knows the service, and learns of a change one delay later.
    BoundA,
    /// Also loses one round trip at the start, and learns of a rise five delays late.
    BoundB,
}

impl AnyPolicy {
    /// The informed policies, which show what is reachable.
    pub const BOUNDS: [AnyPolicy; 2] = [AnyPolicy::BoundA, AnyPolicy::BoundB];
    /// Those that a tournament runs if nothing else is asked for.
    pub const COMPARED: [AnyPolicy; 6] = [
        AnyPolicy::Pacer(Policy::Full),
        AnyPolicy::Pacer(Policy::Seed),
        AnyPolicy::Vector,
        AnyPolicy::Gradient2,
        AnyPolicy::Vegas,
        AnyPolicy::Pacer(Policy::Fixed(20)),
    ];

    /// What decides about one connection; none: the pacer does.
    pub(super) fn level(self, scenario: &Scenario) -> Option<Box<dyn Level>> {
        let options = &scenario.pacer;
        Some(match self {
            AnyPolicy::Pacer(_) => return None,
            AnyPolicy::Vector => Box::new(vector::Vector::new(options)),
            AnyPolicy::Gradient2 => Box::new(gradient2::Gradient2::new(options)),
            AnyPolicy::Vegas => Box::new(vegas::Vegas::new(options, scenario.seed)),
            AnyPolicy::BoundA => Box::new(informed::Informed::new(scenario, false)),
            AnyPolicy::BoundB => Box::new(informed::Informed::new(scenario, true)),
        })
    }
}

/// Decides how much may be in flight on one connection.
pub(super) trait Level {
    /// How much may be in flight.
    fn level(&self) -> u32;

    /// Whether one more request may start; if not, when time itself may allow it.
    fn allows(&mut self, in_flight: u32, _now: Time) -> Result<(), Option<Time>> {
        if in_flight < self.level() { Ok(()) } else { Err(None) }
    }

    /// A request starts; with it, so many are in flight.
    fn started(&mut self, _in_flight: u32, _now: Time) {}

    /// A request ended.
    fn ended(&mut self, sample: &Sample);

    /// Whether it wants to be told of places in the service that become free.
    fn foresees(&self) -> bool {
        false
    }

    /// What starts now finds one place more in the service.
    fn freed(&mut self) {}
}

/// What a request told.
pub(super) struct Sample {
    pub sent: Time,
    pub now: Time,
    /// So many were in flight when it started, itself included.
    pub in_flight: u32,
    pub outcome: Outcome,
}

impl Sample {
    fn round_trip(&self) -> Duration {
        self.now.saturating_sub(self.sent)
    }

    /// Whether it was rejected or timed out.
    fn is_lost(&self) -> bool {
        matches!(self.outcome, Outcome::Throttled { .. } | Outcome::TimedOut)
    }
}

/// All of them begin where the pacer does.
fn first_level(options: &Options) -> u32 {
    options.start.unwrap_or(options.min_parallelism)
}

/// A level that is a fraction, within the pacer's bounds.
fn within(options: &Options, level: f64) -> f64 {
    level.clamp(f64::from(options.min_parallelism), f64::from(options.max))
}

impl FromStr for AnyPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "vector" => AnyPolicy::Vector,
            "gradient2" => AnyPolicy::Gradient2,
            "vegas" => AnyPolicy::Vegas,
            "bound:a" => AnyPolicy::BoundA,
            "bound:b" => AnyPolicy::BoundB,
            _ => match text.parse() {
                Ok(policy) => AnyPolicy::Pacer(policy),
                Err(_) => {
                    return Err(format!(
                        "`{text}` is none of full, seed, fixed:N (N above 0), vector, gradient2, \
                         vegas, bound:a, bound:b"
                    ));
                }
            },
        })
    }
}

impl fmt::Display for AnyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyPolicy::Pacer(policy) => write!(f, "{policy}"),
            AnyPolicy::Vector => f.write_str("vector"),
            AnyPolicy::Gradient2 => f.write_str("gradient2"),
            AnyPolicy::Vegas => f.write_str("vegas"),
            AnyPolicy::BoundA => f.write_str("bound:a"),
            AnyPolicy::BoundB => f.write_str("bound:b"),
        }
    }
}

impl Serialize for AnyPolicy {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
