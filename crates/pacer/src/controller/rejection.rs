//! What follows from a rejection.

use super::{Controller, Started, trial::Trial};
use crate::{
    Time,
    decision::{Cause, Reason},
};
use std::time::Duration;

/// A rejection so soon after a budget came back is more of the same, and no rate.
const FREED: Duration = Duration::from_secs(60);

/// How a service refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rejection {
    /// It wants to be left alone for so long.
    pub retry_after: Option<Duration>,
    /// It did not even say so.
    pub timed_out: bool,
}

impl Rejection {
    /// Whether it came so fast that it was no answer to work.
    fn is_quick(self, started: Started, round_trip: Duration, now: Time) -> bool {
        !self.timed_out && now.saturating_sub(started.at) < round_trip / 2
    }

    fn reason(self, cause: Cause) -> Reason {
        if self.timed_out {
            return Reason::TimedOut;
        }
        Reason::Throttled { retry_after: self.retry_after, cause }
    }
}

impl Controller {
    /// The service rejected a request, or did not answer it in time. Returns what it tells about the
    /// limit, if it is to be acted on.
    pub fn rejected(&mut self, started: Started, rejection: Rejection, now: Time) -> Option<Cause> {
        self.in_flight -= 1;
        self.aimd.count_throttle(now);
        if !self.options.adapts() {
            return None;
        }
        if !self.options.is_full() {
            let from = self.level();
            self.aimd.decrease(now);
            self.decided(from, rejection.reason(Cause::Unknown), now);
            return None;
        }
        if started.trial {
            return Some(self.trial_rejected(started, rejection, now));
        }
        if started.epoch != self.epoch {
            self.refine(started, rejection, now);
            return None;
        }
        self.epoch += 1;
        self.before = self.level();
        let little = self.ceiling.as_mut().is_some_and(|c| c.is_refuted_by(started.seen.in_flight));
        self.burst = rejection.is_quick(started, self.round_trip.mean(), now).then_some(0);
        self.evidence.rejected(started.seen, little || self.puzzled, now);
        self.trial = Trial::due(now);
        let cause = self.cause(rejection);
        self.end_fast_start();
        self.respond(cause, rejection, now);
        self.puzzled = cause == Cause::Unknown;
        Some(cause)
    }

    /// Requests that hang are in flight for us and not for the service: what it answers within a round
    /// trip tells how much it works on.
    fn cause(&self, rejection: Rejection) -> Cause {
        let most = self.answers.per_round_trip();
        if rejection.timed_out && (1..self.level()).contains(&most) {
            return Cause::InFlight { most };
        }
        let freed = self.freed_at.is_some_and(|at| self.aimd.active_at.saturating_sub(at) < FREED);
        match self.evidence.cause() {
            Cause::PerSecond { .. } if freed => Cause::Unknown,
            cause => cause,
        }
    }

    /// Not even one request is accepted: the level has no part in it, and does not fall.
    fn trial_rejected(&mut self, started: Started, rejection: Rejection, now: Time) -> Cause {
        self.evidence.rejected(started.seen, true, now);
        match rejection.retry_after {
            Some(wait) if !wait.is_zero() => self.trial = Trial::due(now),
            _ => self.trial.again(self.round_trip.mean(), now),
        }
        let cause = self.evidence.cause();
        self.heed(cause, rejection, now);
        cause
    }

    /// A service that rejects at once was working on all the others just then: what it accepted of the
    /// burst is what it accepts, whatever was under way to it or back.
    pub(super) fn count_burst(&mut self, now: Time) {
        if let (Some(accepted), Some(ceiling)) = (self.burst.take(), &mut self.ceiling)
            && (1..=self.before).contains(&accepted)
        {
            ceiling.at = accepted;
            self.approach = Some(accepted);
            if self.level() > accepted {
                self.fall(accepted, Reason::Counted, now);
            }
        }
    }

    /// Another rejection of an event that was answered already: the limit may be lower still.
    fn refine(&mut self, started: Started, rejection: Rejection, now: Time) {
        if self.trial != Trial::Over {
            self.evidence.rejected(started.seen, false, now);
            if let Cause::InFlight { most } = self.cause(rejection)
                && let Some(ceiling) = &mut self.ceiling
            {
                ceiling.lowered(most);
                self.approach = Some(ceiling.at);
            }
        }
    }

    fn respond(&mut self, cause: Cause, rejection: Rejection, now: Time) {
        let from = self.level();
        let probing = self.ceiling.as_ref().is_some_and(|ceiling| from > ceiling.at);
        match cause {
            Cause::InFlight { most } if probing => {
                self.aimd.fall(most);
                self.decided(from, Reason::ProbeFailed, now);
            }
            _ => {
                self.aimd.decrease(now);
                self.decided(from, rejection.reason(cause), now);
            }
        }
        self.heed(cause, rejection, now);
    }

    /// Remembers the limit that was found, and where growth may lead at once.
    fn heed(&mut self, cause: Cause, rejection: Rejection, now: Time) {
        match cause {
            Cause::InFlight { most } => {
                let cost = rejection.retry_after.unwrap_or(self.round_trip.mean());
                self.put_ceiling(most, cost, now);
                self.approach = Some(most);
            }
            Cause::PerSecond { .. } => {
                self.ceiling = None;
                self.approach = Some(self.before);
            }
            Cause::Unknown => self.approach = None,
        }
    }
}
