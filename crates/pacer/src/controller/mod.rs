//! The level of one (connection, operation class): samples and a time go in, decisions with their
//! reasons come out.
//!
//! [`Aimd`] is the centre. Around it, in the full policy: one answer per congestion event, a fast
//! start, a remembered ceiling, round trips that end growth, and a trial after each rejection.

mod aimd;
mod answers;
mod ceiling;
mod evidence;
mod fast_start;
mod rejection;
mod round_trip;
mod trial;

use crate::{
    Options, Time,
    decision::{Decision, Log, Reason},
    remember::Remembered,
    statistics::Statistics,
};
use aimd::Aimd;
use answers::Answers;
use ceiling::Ceiling;
use evidence::{Evidence, Seen};
use fast_start::FastStart;
pub(crate) use rejection::Rejection;
use round_trip::{RoundTrip, Verdict};
use std::{sync::Arc, time::Duration};
use trial::Trial;

/// What a look above a remembered ceiling is taken to cost: the service may have changed since.
const RECALLED: Duration = Duration::from_secs(1);
/// At least so many answers are judged at a time …
const JUDGED: u32 = 32;
/// … and so many for each that may be in flight: those of one moment are all slow by one cause.
const ROUNDS: u32 = 4;

/// Decides how much may be in flight.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    options: Arc<Options>,
    /// When it was first used.
    since: Time,
    aimd: Aimd,
    in_flight: u32,
    /// Counts congestion events: a rejection answers only for the level under which it started.
    epoch: u32,
    /// Counts round trips.
    round: u32,
    /// Counts levels: round trips are compared within one.
    generation: u32,
    /// Whether as much as allowed was in flight since the level last changed.
    reached: bool,
    answers: Answers,
    fast_start: Option<FastStart>,
    round_trip: RoundTrip,
    evidence: Evidence,
    ceiling: Option<Ceiling>,
    /// What was found for all who share the service together.
    whole: Option<u32>,
    /// A level that was accepted before: doubling leads there.
    approach: Option<u32>,
    /// The level when the service last rejected …
    before: u32,
    /// … and, if it rejected at once, how many of those under way it accepted.
    burst: Option<u32>,
    /// Nothing explained that rejection: the next one is looked at with more suspicion.
    puzzled: bool,
    /// When a budget that was used up was last free again.
    freed_at: Option<Time>,
    trial: Trial,
    log: Log,
}

/// What a request remembers of its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub at: Time,
    epoch: u32,
    round: u32,
    generation: u32,
    seen: Seen,
    pub trial: bool,
}

/// Why no request may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// As many as allowed are in flight.
    Full,
    /// One asks whether the service takes requests again.
    Trial(Option<Time>),
}

impl Controller {
    pub fn new(options: Arc<Options>, now: Time) -> Self {
        let aimd = Aimd::new(options.clone(), now);
        let mut controller = Self {
            since: now,
            in_flight: 0,
            epoch: 0,
            round: 0,
            generation: 0,
            reached: false,
            answers: Answers::default(),
            fast_start: options.is_full().then(FastStart::default),
            round_trip: RoundTrip::default(),
            evidence: Evidence::default(),
            ceiling: None,
            whole: None,
            approach: None,
            before: aimd.level,
            burst: None,
            puzzled: false,
            freed_at: None,
            trial: Trial::Over,
            log: Log::default(),
            aimd,
            options,
        };
        controller.decided(0, Reason::Start, now);
        controller
    }

    pub fn level(&self) -> u32 {
        self.aimd.level
    }

    /// How many requests have no answer yet.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// What a request takes, as far as is known.
    pub fn round_trip(&self) -> Duration {
        self.round_trip.mean()
    }

    /// Whether a request may start.
    pub fn room(&self, now: Time) -> Result<u32, Held> {
        self.trial.allows(now).map_err(Held::Trial)?;
        let room = self.level().saturating_sub(self.in_flight);
        if room == 0 { Err(Held::Full) } else { Ok(room) }
    }

    /// Learns all again after a long time without requests.
    pub fn wake(&mut self, now: Time) {
        if self.options.adapts() && self.in_flight == 0 && self.aimd.is_idle(now) {
            self.reset(Reason::Idle, now);
        }
        self.aimd.active(now);
    }

    /// Lets one request ask whether the service takes requests again.
    pub fn ask_first(&mut self, now: Time) {
        if self.options.is_full() && self.trial == Trial::Over {
            self.trial = Trial::due(now);
        }
    }

    /// The rejection was no matter of the level: goes back to where it was, by doubling from the lowest
    /// level. A budget comes back in the order in which it was used, and that began like this.
    pub fn restore(&mut self, now: Time) {
        if self.options.is_full() {
            self.puzzled = false;
            self.freed_at = Some(now);
            self.fall(self.options.min_parallelism, Reason::BudgetFreed, now);
            self.approach = Some(self.before);
        }
    }

    /// Others came, and take their part of what the service accepts; or others left, and what they took
    /// may be free.
    pub fn share(&mut self, before: u32, after: u32, now: Time) {
        // A service that never rejected may have enough for all.
        let known = self.ceiling.is_some() || self.aimd.throttled_at.is_some();
        if !self.options.is_full() || !known {
            return;
        }
        let found = self.ceiling.as_ref().map_or(self.level(), |ceiling| ceiling.at);
        let whole = self.whole.unwrap_or(found.saturating_mul(before));
        let part = (whole / after).max(self.options.min_parallelism);
        self.whole = (after > 1).then_some(whole);
        match &mut self.ceiling {
            Some(ceiling) if part < ceiling.at => ceiling.lowered(part),
            Some(ceiling) if part > ceiling.at => *ceiling = Ceiling::found(part, RECALLED, now),
            _ => {}
        }
        if self.level() > part {
            self.approach = self.approach.map(|level| level.min(part));
            self.fall(part, Reason::Shared, now);
        } else if after < before && self.ceiling.is_some() {
            self.approach = Some(part);
        }
    }

    /// Forgets all but totals and the log.
    pub fn reset(&mut self, reason: Reason, now: Time) {
        let from = self.level();
        self.aimd.reset(now);
        *self = Self {
            aimd: self.aimd.clone(),
            since: self.since,
            in_flight: self.in_flight,
            epoch: self.epoch + 1,
            log: std::mem::take(&mut self.log),
            ..Self::new(self.options.clone(), now)
        };
        self.decided(from, reason, now);
    }

    /// A request starts.
    pub fn start(&mut self, now: Time) -> Started {
        self.in_flight += 1;
        self.reached |= self.in_flight >= self.level();
        Started {
            at: now,
            epoch: self.epoch,
            round: self.round,
            generation: self.generation,
            seen: self.evidence.start(self.in_flight, now),
            trial: self.trial.start(),
        }
    }

    /// A request ended without telling anything about the pace.
    pub fn ended(&mut self, started: Started, answered: bool, now: Time) {
        self.in_flight -= 1;
        if started.trial {
            if answered {
                self.trial = Trial::Over;
            } else {
                self.trial.abandoned(now);
            }
        }
    }

    /// A request succeeded.
    pub fn succeeded(&mut self, started: Started, now: Time) {
        self.ended(started, true, now);
        self.aimd.succeeded(now);
        if !self.options.adapts() {
            return;
        }
        if !self.options.is_full() {
            return self.increase_as_aimd(now);
        }
        if started.trial {
            self.count_burst(now);
            self.evidence.close();
        } else if started.epoch != self.epoch
            && let Some(accepted) = &mut self.burst
        {
            *accepted += 1;
        }
        self.evidence.accepted(started.seen, now);
        if started.round == self.round {
            self.round += 1;
            self.answers.round_ended();
        }
        self.answers.add();
        if started.epoch == self.epoch {
            self.raise_ceiling(started.seen.in_flight, now);
        }
        let round_trip = now.saturating_sub(started.at);
        match self.fast_start {
            Some(_) => self.grow_fast(started, round_trip, now),
            None => {
                if started.generation == self.generation {
                    self.round_trip.add(round_trip, started.seen.in_flight, now);
                }
                self.grow(now);
            }
        }
    }

    fn increase_as_aimd(&mut self, now: Time) {
        if self.aimd.may_increase(now) && self.level() < self.options.max {
            let (level, reason) = self.aimd.increased();
            self.raise(level, reason, now);
        }
    }

    fn grow_fast(&mut self, started: Started, round_trip: Duration, now: Time) {
        let Some(fast_start) = &mut self.fast_start else { return };
        let slow = self.round_trip.is_slow(round_trip);
        self.round_trip.add(round_trip, started.seen.in_flight, now);
        if !slow {
            self.round_trip.settle();
        }
        let level = fast_start.grown(self.aimd.level, started.seen.in_flight, slow, &self.answers);
        if fast_start.is_over() {
            self.fast_start = None;
            return self.judge_round_trips(true, now);
        }
        if level > self.level() {
            self.raise(level, Reason::FastStart, now);
        }
        if self.level() == self.options.max {
            self.end_fast_start();
        }
    }

    /// Ends the fast start without slow answers. What was learned in it about round trips is too short:
    /// while more and more requests start, the fast answers are the ones that are seen.
    fn end_fast_start(&mut self) {
        if self.fast_start.take().is_some() {
            self.round_trip.forget();
        }
    }

    fn grow(&mut self, now: Time) {
        if let Some(level) = self.approach {
            return self.approach(level, now);
        }
        if self.round_trip.count() >= self.level().saturating_mul(ROUNDS).max(JUDGED) {
            self.judge_round_trips(false, now);
        }
        // Growth that nobody uses bursts later; growth that only makes answers wait helps nobody.
        let worth_it = self.reached && !self.round_trip.is_inflated();
        if !worth_it || !self.aimd.may_increase(now) || self.level() == self.options.max {
            return;
        }
        let (increased, reason) = self.aimd.increased();
        let level = match &self.ceiling {
            None => increased,
            Some(ceiling) if self.level() < ceiling.at => increased.min(ceiling.at),
            Some(ceiling) => ceiling.probe(now).unwrap_or(self.level()),
        };
        if level > self.level() {
            self.raise(level, reason, now);
        }
    }

    /// Doubles up to a level that was accepted before.
    fn approach(&mut self, level: u32, now: Time) {
        if self.level() < level {
            self.raise(self.level() + 1, Reason::Approach, now);
        }
        if self.level() >= level.min(self.options.max) {
            self.approach = None;
        }
    }

    /// Takes note that so many in flight were accepted.
    fn raise_ceiling(&mut self, accepted: u32, now: Time) {
        let level = self.level();
        if let Some(ceiling) = &mut self.ceiling
            && accepted > ceiling.at
            && accepted >= level
        {
            ceiling.raised(accepted, now);
            self.whole = None;
        }
    }

    fn judge_round_trips(&mut self, sure: bool, now: Time) {
        let cost = self.round_trip.mean();
        match self.round_trip.judge(self.level(), sure) {
            Verdict::Good => {}
            Verdict::Inflated { useful } => {
                let useful = useful.max(self.options.min_parallelism);
                self.put_ceiling(useful, cost, now);
                self.fall(useful, Reason::Inflated, now);
            }
            Verdict::Slower { from } => {
                self.ceiling = None;
                self.raise(from, Reason::SlowerService, now);
            }
        }
    }

    fn put_ceiling(&mut self, at: u32, cost: Duration, now: Time) {
        self.whole = None;
        match &mut self.ceiling {
            Some(ceiling) if ceiling.is_near(at) => ceiling.confirmed(at, cost, now),
            other => *other = Some(Ceiling::found(at, cost, now)),
        }
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
        self.generation += 1;
        if self.fast_start.is_none() {
            self.round_trip.skip(now);
        }
        self.reached = self.in_flight >= self.level();
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
        statistics.in_flight = self.in_flight;
        statistics.ceiling = self.ceiling.as_ref().map(|ceiling| ceiling.at);
        statistics.round_trip = self.round_trip.mean();
        statistics.decisions = self.log.all();
    }

    /// The level to begin with next time, and whether it is a limit of the service: all of it, not the
    /// part of one `among` so many.
    pub fn remembered(&self, among: u32) -> (u32, bool) {
        match &self.ceiling {
            Some(ceiling) => (self.whole.unwrap_or(ceiling.at.saturating_mul(among)), true),
            None => (self.level(), false),
        }
    }

    /// Begins where an earlier process ended, if it found a limit and that is not too long ago. A level
    /// that was never rejected tells nothing: a fast start finds a better one.
    pub fn recall(&mut self, remembered: &Remembered, now: Time) {
        let fresh = now.saturating_sub(remembered.at) <= self.options.last_known_good_ttl;
        if fresh && remembered.throttled && self.options.is_full() {
            self.fast_start = None;
            self.ceiling = Some(Ceiling::found(remembered.level, RECALLED, now));
            self.raise(remembered.level, Reason::Remembered, now);
        }
    }
}

#[cfg(test)]
mod tests;
