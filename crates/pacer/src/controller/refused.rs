//! What follows from a request that was refused, or not answered.

use super::{
    Ask, Controller, Role, Sent,
    belief::Refuted,
    ceiling::Ceiling,
    probes::Speed,
    run::{Refusals, Times},
};
use crate::{
    Time,
    decision::{Cause, Reason},
};
use std::time::Duration;

/// A service that does not answer is asked so many round trips apart: each request makes it busier still …
const SILENT: u32 = 5;
/// … and at least this long.
const SILENT_AT_LEAST: Duration = Duration::from_secs(1);

/// Probes of a rate are so many times further apart than probes of what is in flight are in round trips.
const RATE_SEEN: u32 = 25;

/// A refusal within this part of a round trip came at once.
const AT_ONCE: u32 = 2;
/// A service that fell accepts less by one in so many at least.
const FELL: u32 = 8;
/// A lost request may delay the end of the work by a time-out. That is taken to cost this share of it …
const LOST: u32 = 6;
/// … and a time-out that is not known to be so many round trips.
const UNKNOWN: u32 = 8;

impl Controller {
    /// A request was refused, or is lost. Returns what that tells about the limit, if it is to be acted on.
    pub(super) fn refused(
        &mut self,
        id: u64,
        sent: Sent,
        reason: Reason,
        retry_after: Option<Duration>,
        now: Time,
    ) -> Option<Cause> {
        let retry_after = retry_after.filter(|wait| !wait.is_zero());
        let silent = silent(&reason);
        self.trouble.cost = match retry_after {
            None if silent => self.trouble.timeout.max(self.answers.round_trip() * UNKNOWN) / LOST,
            known => known.unwrap_or_default(),
        };
        if retry_after.is_some() {
            self.trouble.ask.begin(now);
        }
        if !silent && now.saturating_sub(sent.at) < self.answers.round_trip() / AT_ONCE {
            self.trouble.burst.begin(self.out.next(), self.level());
        }
        let useful = self.answers.useful().unwrap_or(u32::MAX);
        if silent && sent.role == Role::Usual && sent.seen.in_flight > useful {
            return None;
        }
        match sent.role {
            Role::Asks => Some(self.ask_refused(sent, reason, retry_after.is_some(), now)),
            Role::ProbesFlight | Role::ProbesRate => Some(self.probe_failed(id, sent, now)),
            Role::Usual if sent.generation == self.generation => {
                Some(self.refute(id, sent, reason, now))
            }
            Role::Usual => self.sharpen(sent, now),
        }
    }

    fn speed(&self) -> Speed {
        let round_trip = self.answers.round_trip();
        let per_second = f64::from(self.level()) / round_trip.as_secs_f64().max(1e-6);
        Speed { round_trip, per_second, cost: self.trouble.cost }
    }

    /// Not even one request is accepted. If that is by the rate, no more have to ask.
    fn ask_refused(&mut self, sent: Sent, reason: Reason, is_told: bool, now: Time) -> Cause {
        let silent = silent(&reason);
        if !silent && self.belief.judge(sent.seen, Duration::ZERO) == Refuted::TheRate {
            self.trouble.ask = Ask::Over;
            return self.found_rate(reason, now);
        }
        let least = if silent { self.silent_for() } else { self.answers.round_trip() };
        self.trouble.ask.again(least, is_told, now);
        Cause::Unknown
    }

    /// So long a service that does not answer is left alone.
    pub(super) fn silent_for(&self) -> Duration {
        (self.answers.round_trip() * SILENT).max(SILENT_AT_LEAST)
    }

    fn speed_at(&self, rate: u32) -> Speed {
        let per_second = f64::from(rate.max(1));
        let seen = Duration::from_secs_f64(f64::from(RATE_SEEN) / per_second);
        let round_trip = self.answers.round_trip().max(seen);
        Speed { round_trip, per_second, cost: self.trouble.cost }
    }

    fn probe_failed(&mut self, id: u64, sent: Sent, now: Time) -> Cause {
        self.starts.probe.take_if(|probe| probe.id == id);
        let rate = self.belief.rate.map_or(1, |rate| rate.at());
        let (speed, ceiling, flight) = match sent.role {
            Role::ProbesRate => (self.speed_at(rate), &mut self.belief.rate, false),
            _ => (self.speed(), &mut self.belief.flight, true),
        };
        let Some(ceiling) = ceiling else { return Cause::Unknown };
        ceiling.probe_refused(speed, now);
        self.starts.spread.begin();
        let most = ceiling.at();
        self.decided(self.level(), Reason::ProbeFailed, now);
        if flight { Cause::InFlight { most } } else { Cause::PerSecond { most } }
    }

    /// A refusal refutes something that was believed: a ceiling, that it is no rate, or all of it.
    fn refute(&mut self, id: u64, sent: Sent, reason: Reason, now: Time) -> Cause {
        let seen = sent.seen;
        let most = seen.in_flight.saturating_sub(1);
        let refuted = self.belief.judge(seen, self.steady_for(now));
        match refuted {
            Refuted::TheRate if !silent(&reason) => return self.found_rate(reason, now),
            Refuted::MoreInFlight if most > 0 && self.belief.most().in_flight > 0 => {
                return self.found_ceiling(most, reason, now);
            }
            _ => {}
        }
        let steady = self.steady_for(now) > self.answers.round_trip() * 2;
        if id < self.trouble.lowered && !steady {
            let speed = self.speed();
            self.belief.flight.iter_mut().for_each(|ceiling| ceiling.owe(speed, now));
            return Cause::InFlight { most };
        }
        match self.trouble.run.refused(id, seen, self.times(sent, now), self.believed()) {
            _ if most == 0 => self.fall_back(0, reason, now),
            Refusals::Fall => self.fell(reason, now),
            Refusals::One if refuted != Refuted::All && !self.is_tolerated() => {
                self.step_back(most, reason, now)
            }
            Refusals::One | Refusals::Several => Cause::InFlight { most },
        }
    }

    fn is_tolerated(&mut self) -> bool {
        self.belief.flight.as_mut().is_some_and(Ceiling::tolerates)
    }

    fn times(&self, sent: Sent, now: Time) -> Times {
        Times { now, expected: sent.at + self.answers.times().usual() }
    }

    /// Many were refused in a row: by the rate, if never were so many accepted within a second.
    pub(super) fn fell(&mut self, reason: Reason, now: Time) -> Cause {
        let least = self.trouble.run.least();
        if !silent(&reason) && self.belief.is_more(least.per_second) {
            self.trouble.run.end();
            return self.found_rate(reason, now);
        }
        self.fall_back(least.in_flight.saturating_sub(1), reason, now)
    }

    /// For how many round trips the level has not been raised.
    fn steady_for(&self, now: Time) -> Duration {
        let since = now.saturating_sub(self.aimd.increased_at);
        since.saturating_sub(self.answers.round_trip() * 2)
    }

    /// So many in flight were accepted, but not now.
    fn step_back(&mut self, most: u32, reason: Reason, now: Time) -> Cause {
        let speed = self.speed();
        let Some(ceiling) = &mut self.belief.flight else {
            return self.found_ceiling(most, reason, now);
        };
        ceiling.step_back(most, speed, now);
        let at = ceiling.at();
        self.found_ceiling(at, reason, now)
    }

    /// At most so many in flight are accepted.
    fn found_ceiling(&mut self, most: u32, reason: Reason, now: Time) -> Cause {
        let (speed, cause) = (self.speed(), Cause::InFlight { most });
        self.whole = None;
        self.climb.end();
        match &mut self.belief.flight {
            Some(ceiling) => ceiling.lower(most, speed, now),
            none => *none = Some(Ceiling::found(most, speed, now)),
        }
        if self.level() > most {
            self.trouble.lowered = self.out.next();
            self.fall(most, reason.because(cause), now);
        }
        cause
    }

    /// So many within a second are accepted, and not many more.
    fn found_rate(&mut self, reason: Reason, now: Time) -> Cause {
        let most = self.belief.most().per_second;
        let (speed, cause) = (self.speed_at(most), Cause::PerSecond { most });
        self.belief.flight = None;
        self.belief.rate = Some(Ceiling::found(most, speed, now));
        self.climb.end();
        self.generation += 1;
        self.decided(self.level(), reason.because(cause), now);
        cause
    }

    /// The service accepts less than it did, for a reason that is not known: what it accepted before proves
    /// nothing anymore.
    fn fall_back(&mut self, most: u32, reason: Reason, now: Time) -> Cause {
        let before = self.trouble.run.end();
        self.trouble.fallen_from = self.trouble.fallen_from.take().or(before);
        let (from, speed) = (self.level(), self.speed());
        let raised = self.steady_for(now) < speed.round_trip;
        self.generation += 1;
        if most > 0 {
            self.belief.forget_accepted();
            self.belief.rate = None;
        }
        self.climb.end();
        self.climb.forget_goal();
        self.aimd.decrease(now);
        if most == 0 {
            self.trouble.ask.begin(now + self.answers.round_trip());
        } else {
            let most = (most - most / FELL).max(1);
            match &mut self.belief.flight {
                Some(ceiling) if raised => ceiling.step_back(most, speed, now),
                other => *other = Some(Ceiling::fell_to(most, speed, now)),
            }
        }
        self.decided(from, reason.because(Cause::Unknown), now);
        Cause::Unknown
    }

    /// A refusal of an event that was dealt with: the rate may be lower still.
    fn sharpen(&mut self, sent: Sent, now: Time) -> Option<Cause> {
        let (least, speed) = (sent.seen.per_second.saturating_sub(1), self.speed());
        if let Some(rate) = &mut self.belief.rate
            && least >= 1
        {
            rate.lower(least, speed, now);
        }
        None
    }
}

/// Whether the service did not even answer.
fn silent(reason: &Reason) -> bool {
    matches!(reason, Reason::Overdue | Reason::TimedOut)
}
