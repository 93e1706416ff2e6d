//! The level of one (connection, operation class): samples and a time go in, decisions with their
//! reasons come out.
//!
//! [`Aimd`] is a policy by itself. The full policy asks of each answer what it proves about the service, one
//! principle per file: [`curve`] for services that slow down, [`belief`] and [`ceiling`] for those that
//! refuse, [`silence`] for those that do not answer, [`run`] and [`ask`] for those that changed.

mod accepted;
mod aimd;
mod answers;
mod ask;
mod belief;
mod burst;
mod ceiling;
mod climb;
mod curve;
mod outstanding;
mod probes;
mod refused;
mod room;
mod round_trip;
mod run;
mod silence;
mod spread;
mod window;

use crate::{
    Options, Time,
    decision::{Cause, Decision, Log, Reason},
    remember::Remembered,
    statistics::Statistics,
};
use aimd::Aimd;
use answers::Answers;
use ask::Ask;
use belief::Belief;
use burst::Burst;
use ceiling::Ceiling;
use climb::Climb;
use outstanding::{Outstanding, Role, Sent};
use probes::Speed;
use room::Probe;
use run::Run;
use silence::Silence;
use spread::Spread;
use std::{sync::Arc, time::Duration};
use window::Window;

/// What a refusal is taken to cost by a process that has just started.
const RECALLED: Duration = Duration::from_millis(400);

/// A service that slows down may work on a request for so many time-outs more.
const SLOW: u32 = 3;

/// Decides how much may be in flight.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    options: Arc<Options>,
    /// When it was first used.
    since: Time,
    aimd: Aimd,
    out: Outstanding,
    /// Counts falls: a refusal answers only for the level under which it started.
    generation: u32,
    answers: Answers,
    belief: Belief,
    climb: Climb,
    starts: Starts,
    trouble: Trouble,
    /// What was found for all who share the service together.
    whole: Option<u32>,
    log: Log,
}

/// What decides when the next request may start, beside the level.
#[derive(Clone, Debug, Default)]
struct Starts {
    window: Window,
    probe: Option<Probe>,
    spread: Spread,
}

/// What is known of refusals and lost requests that have not been explained yet.
#[derive(Clone, Debug, Default)]
struct Trouble {
    run: Run,
    burst: Burst,
    silence: Silence,
    ask: Ask,
    /// Requests before this one started before the level was last lowered for a refusal.
    lowered: u64,
    /// What was believed before the service accepted less.
    fallen_from: Option<Before>,
    /// What the last refusal cost.
    cost: Duration,
    /// How long it takes until the caller gives up.
    timeout: Duration,
}

/// What a request remembers of its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub at: Time,
    id: u64,
    /// It asks whether anything is accepted.
    pub trial: bool,
}

/// What was believed at some time, and the level.
#[derive(Clone, Debug)]
struct Before {
    belief: Belief,
    level: u32,
}

/// How a service refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rejection {
    /// It wants to be left alone for so long.
    pub retry_after: Option<Duration>,
    /// It did not even say so.
    pub timed_out: bool,
}

/// Why no request may start, and from when on one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// As many as allowed are in flight. The time is when one of them is taken as lost.
    Full(Option<Time>),
    /// One asks whether the service takes requests again.
    Asks(Option<Time>),
    /// So many started within the last second.
    Rate(Time),
    /// Requests start evenly.
    Spread(Time),
}

impl Controller {
    pub fn new(options: Arc<Options>, now: Time) -> Self {
        let mut controller = Self {
            since: now,
            aimd: Aimd::new(options.clone(), now),
            out: Outstanding::default(),
            generation: 0,
            answers: Answers::default(),
            belief: Belief::default(),
            climb: Climb::default(),
            starts: Starts::default(),
            trouble: Trouble::default(),
            whole: None,
            log: Log::default(),
            options,
        };
        controller.decided(0, Reason::Start, now);
        controller
    }

    pub fn level(&self) -> u32 {
        self.aimd.level
    }

    /// How many requests have not ended.
    pub fn in_flight(&self) -> u32 {
        self.out.live() + self.out.lost()
    }

    /// What a request takes, as far as is known.
    pub fn round_trip(&self) -> Duration {
        self.answers.round_trip()
    }

    /// Requests per second that are accepted, if that is what was found to be limited.
    pub fn rate(&self) -> Option<f64> {
        self.belief.rate.map(|rate| f64::from(rate.at()))
    }

    /// Learns all again after a long time without requests.
    pub fn wake(&mut self, now: Time) {
        if self.options.adapts() && self.in_flight() == 0 && self.aimd.is_idle(now) {
            self.reset(Reason::Idle, now);
        }
        self.aimd.active(now);
    }

    /// Lets one request ask whether the service takes requests again.
    pub fn ask_first(&mut self, now: Time) {
        if self.options.is_full() {
            self.trouble.ask.begin(now);
        }
    }

    /// The refusal was no matter of the level: goes back to where it was, by doubling from the lowest
    /// level. A budget comes back in the order in which it was used, and that began like this.
    pub fn restore(&mut self, now: Time) {
        if self.options.is_full() {
            let good = self.climb.goal().unwrap_or(0).max(self.level());
            self.climb.return_to(good);
            self.fall(self.options.min_parallelism, Reason::BudgetFreed, now);
        }
    }

    /// Others came, and take their part of what the service accepts; or others left, and what they took
    /// may be free.
    pub fn share(&mut self, before: u32, after: u32, now: Time) {
        // A service that never refused may have enough for all.
        let known = self.belief.flight.is_some() || self.aimd.throttled_at.is_some();
        if !self.options.is_full() || !known {
            return;
        }
        let found = self.belief.flight.map_or(self.level(), |ceiling| ceiling.at());
        let whole = self.whole.unwrap_or(found.saturating_mul(before));
        let part = (whole / after).max(self.options.min_parallelism);
        self.whole = (after > 1).then_some(whole);
        if let Some(ceiling) = &mut self.belief.flight {
            *ceiling = Ceiling::found(part, Speed { cost: RECALLED, ..Speed::default() }, now);
        }
        if self.level() > part {
            self.climb.forget_goal();
            self.fall(part, Reason::Shared, now);
        } else if after < before && self.belief.flight.is_some() {
            self.climb.return_to(part);
        }
    }

    /// Forgets all but totals, the log and what is out.
    pub fn reset(&mut self, reason: Reason, now: Time) {
        let from = self.level();
        self.aimd.reset(now);
        *self = Self {
            aimd: self.aimd.clone(),
            since: self.since,
            out: std::mem::take(&mut self.out),
            generation: self.generation + 1,
            log: std::mem::take(&mut self.log),
            ..Self::new(self.options.clone(), now)
        };
        self.decided(from, reason, now);
    }

    /// A request ended without telling anything about the pace.
    pub fn ended(&mut self, started: Started, answered: bool, now: Time) {
        self.end(started);
        if started.trial {
            if answered {
                self.trouble.ask = Ask::Over;
            } else {
                self.trouble.ask.abandoned(now);
            }
        }
    }

    fn end(&mut self, started: Started) -> Option<(Sent, bool)> {
        let ended = self.out.end(started.id);
        self.starts.probe.take_if(|probe| probe.id == started.id && !probe.accepted);
        if self.out.lost() == 0 {
            self.trouble.silence.over();
        }
        ended
    }

    /// A request succeeded.
    pub fn succeeded(&mut self, started: Started, now: Time) {
        let probe = self.starts.probe;
        let ended = self.end(started);
        self.starts.probe = probe;
        self.aimd.succeeded(now);
        if !self.options.adapts() {
            return;
        }
        if !self.options.is_full() {
            return self.increase_as_aimd(now);
        }
        let Some((sent, was_lost)) = ended else { return };
        if was_lost {
            self.answered_late(now);
        }
        self.accepted(started.id, sent, now);
        self.judge_probe(now);
    }

    fn answered_late(&mut self, now: Time) {
        if let Some(Before { belief, level }) = self.trouble.silence.answered_late() {
            self.belief = belief;
            self.generation += 1;
            if level > self.level() {
                self.raise(level, Reason::AnsweredLate, now);
            }
        }
    }

    fn increase_as_aimd(&mut self, now: Time) {
        if self.aimd.may_increase(now) && self.level() < self.options.max {
            let (level, reason) = self.aimd.increased();
            self.raise(level, reason, now);
        }
    }

    /// The service refused a request, or did not answer it in time. Returns what it tells about the
    /// limit, if it is to be acted on.
    pub fn rejected(&mut self, started: Started, rejection: Rejection, now: Time) -> Option<Cause> {
        let probe = self.starts.probe;
        let ended = self.end(started);
        self.starts.probe = probe;
        self.aimd.count_throttle(now);
        if !self.options.adapts() {
            return None;
        }
        let Rejection { retry_after, timed_out } = rejection;
        let reason = match timed_out {
            true => Reason::TimedOut,
            false => Reason::Throttled { retry_after, cause: Cause::Unknown },
        };
        if !self.options.is_full() {
            let from = self.level();
            self.aimd.decrease(now);
            self.decided(from, reason, now);
            return None;
        }
        let (sent, was_lost) = ended?;
        if timed_out {
            self.gave_up(started.id, sent, now);
            self.trouble.silence.confirm();
        } else if was_lost {
            self.answered_late(now);
        }
        let dealt_with = was_lost && timed_out;
        let cause = if dealt_with {
            None
        } else {
            self.refused(started.id, sent, reason, retry_after, now)
        };
        self.judge_probe(now);
        cause
    }

    /// The caller gave a request up. It may still be worked on: for long, if the service slows down.
    fn gave_up(&mut self, id: u64, sent: Sent, now: Time) {
        let waited = now.saturating_sub(sent.at);
        self.trouble.timeout = self.trouble.timeout.max(waited);
        let times = if self.answers.useful().is_some() { SLOW } else { 1 };
        self.out.given_up(id, now + waited * times);
    }

    /// What is believed now.
    fn believed(&self) -> Before {
        Before { belief: self.belief.clone(), level: self.level() }
    }

    fn raise(&mut self, level: u32, reason: Reason, now: Time) {
        let from = self.level();
        self.aimd.raise(level, now);
        self.decided(from, reason, now);
    }

    fn fall(&mut self, level: u32, reason: Reason, now: Time) {
        let from = self.level();
        self.aimd.fall(level);
        self.decided(from, reason, now);
    }

    fn decided(&mut self, from: u32, reason: Reason, now: Time) {
        self.log.add(Decision { at: now, from, to: self.level(), reason });
    }

    /// Fills in what is known here.
    pub fn describe(&self, statistics: &mut Statistics, now: Time) {
        let aimd = &self.aimd;
        statistics.since = self.since;
        statistics.current_parallelism = aimd.level;
        statistics.max_parallelism = self.options.max;
        statistics.last_known_good_parallelism = aimd.last_known_good;
        statistics.is_last_known_good_stale = aimd.is_stale(now);
        statistics.successes_since_throttle = aimd.successes_since_throttle;
        statistics.total_throttle_events = aimd.total_throttles;
        statistics.last_throttle_time = aimd.throttled_at;
        statistics.last_increase_time = aimd.increased_at;
        statistics.last_activity_time = aimd.active_at;
        statistics.in_flight = self.in_flight();
        statistics.ceiling = self.belief.flight.map(|ceiling| ceiling.at());
        statistics.round_trip = self.round_trip();
        statistics.decisions = self.log.all();
    }

    /// The level to begin with next time, and whether it is a limit of the service: all of it, not the
    /// part of one `among` so many.
    pub fn remembered(&self, among: u32) -> (u32, bool) {
        match &self.belief.flight {
            Some(ceiling) => (self.whole.unwrap_or(ceiling.at().saturating_mul(among)), true),
            None => (self.level(), false),
        }
    }

    /// Begins where an earlier process ended, if it found a limit and that is not too long ago. A level
    /// that was never refused tells nothing: a fast start finds a better one.
    pub fn recall(&mut self, remembered: &Remembered, now: Time) {
        let fresh = now.saturating_sub(remembered.at) <= self.options.last_known_good_ttl;
        if fresh && remembered.throttled && self.options.is_full() {
            let speed = Speed { cost: RECALLED, ..Speed::default() };
            self.climb.end();
            self.belief.flight = Some(Ceiling::found(remembered.level, speed, now));
            self.raise(remembered.level, Reason::Remembered, now);
        }
    }
}

#[cfg(test)]
mod tests;
