//! What was decided, and why.

use crate::Time;
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, fmt, time::Duration};

/// So many decisions are kept: an hour of a restless service.
const KEPT: usize = 256;

/// A change of the level, or of something that bounds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    #[serde(with = "crate::time::seconds")]
    pub at: Time,
    /// The level before …
    pub from: u32,
    /// … and after.
    pub to: u32,
    /// Why.
    pub reason: Reason,
}

/// Why a level changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Reason {
    /// The first level.
    Start,
    /// Doubling, as long as the service keeps up.
    FastStart,
    /// Doubling, up to a level that was accepted before.
    Approach,
    /// Growth back to a level that was good before.
    Recovery,
    /// Growth above it.
    Probe,
    /// The service rejected a request.
    Throttled {
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
        /// What the rejection tells about its limit.
        cause: Cause,
    },
    /// A request had no answer in time.
    TimedOut,
    /// A request has had no answer for much longer than usual, and is taken as lost.
    Overdue,
    /// Many requests were refused in a row, and none was accepted.
    Fell,
    /// Requests that were taken as lost were answered after all: what followed from it is undone.
    AnsweredLate,
    /// Small steps, above a level that once ended the growth.
    Growth,
    /// One request above the ceiling was accepted.
    ProbeAccepted,
    /// One request above the ceiling was refused.
    ProbeFailed,
    /// Round trips grow so much with the level that throughput falls.
    Inflated,
    /// The one request that asked was accepted, after nothing had been.
    Answered,
    /// A budget that was used up is free again.
    BudgetFreed,
    /// Nothing was asked for a long time.
    Idle,
    /// Somebody asked for it.
    Reset,
    /// Known from earlier.
    Remembered,
    /// Another process sends to the same service.
    Shared,
}

/// What a rejection tells about the limit behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "limit")]
pub enum Cause {
    /// So many in flight were accepted, and one more was not.
    InFlight {
        /// The most that are accepted.
        most: u32,
    },
    /// So many within a second were accepted, and one more was not.
    PerSecond {
        /// The most that are accepted.
        most: u32,
    },
    /// Neither: a budget over a longer time, or a limit that moved.
    Unknown,
}

impl Reason {
    /// The same, now that it is known what a rejection tells.
    pub(crate) fn because(self, cause: Cause) -> Self {
        match self {
            Reason::Throttled { retry_after, .. } => Reason::Throttled { retry_after, cause },
            other => other,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, from, to, reason } = self;
        write!(f, "{:>9.3} s  {from:>4} → {to:<4} {reason}", at.as_secs_f64())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Start => f.write_str("start"),
            Reason::FastStart => f.write_str("fast start: the service keeps up"),
            Reason::Approach => f.write_str("approach: so many were accepted before"),
            Reason::Recovery => f.write_str("recovery: this level was good before"),
            Reason::Probe => f.write_str("probe: stable at this level"),
            Reason::Throttled { retry_after, cause } => {
                write!(f, "throttled: {cause}")?;
                retry_after.map_or(Ok(()), |wait| write!(f, ", retry after {wait:.1?}"))
            }
            Reason::TimedOut => f.write_str("no answer in time"),
            Reason::Overdue => f.write_str("overdue: taken as lost"),
            Reason::Fell => f.write_str("many were refused in a row: it accepts less"),
            Reason::AnsweredLate => f.write_str("answered late: not lost after all"),
            Reason::Growth => f.write_str("growth: all of this level was answered"),
            Reason::ProbeAccepted => f.write_str("probe: one more was accepted"),
            Reason::ProbeFailed => f.write_str("probe: one more was refused"),
            Reason::Inflated => f.write_str("throughput is best here: round trips grow beyond"),
            Reason::Answered => f.write_str("the service accepts again"),
            Reason::BudgetFreed => f.write_str("a budget is free again"),
            Reason::Idle => f.write_str("idle: learn again"),
            Reason::Reset => f.write_str("reset"),
            Reason::Remembered => f.write_str("remembered from earlier"),
            Reason::Shared => f.write_str("shared with another process"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::InFlight { most } => write!(f, "more than {most} in flight"),
            Cause::PerSecond { most } => write!(f, "more than {most} per second"),
            Cause::Unknown => f.write_str("by a limit that is not known"),
        }
    }
}

/// The last decisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(VecDeque<Decision>);

impl Log {
    /// Adds a decision. The steps of one doubling are one decision.
    pub fn add(&mut self, decision: Decision) {
        if matches!(
            decision.reason,
            Reason::FastStart | Reason::Approach | Reason::Growth | Reason::ProbeAccepted
        ) && let Some(last) = self.0.back_mut()
            && last.reason == decision.reason
        {
            last.to = decision.to;
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(decision);
    }

    /// Oldest first.
    pub fn all(&self) -> Vec<Decision> {
        self.0.iter().cloned().collect()
    }
}
