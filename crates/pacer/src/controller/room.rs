//! Whether a request may start, and why it may.

use super::{Controller, Held, Role, Sent, Started, outstanding::Seen};
use crate::{Time, decision::Reason};
use std::time::Duration;

/// If more than so many are lost and none is answered, it was no matter of the level.
const MANY: u32 = 3;

/// The one request that is tried above a ceiling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub id: u64,
    pub role: Role,
    /// It was accepted. That counts when all that started before it are answered: if one of them is
    /// lost, fewer were in flight than it seemed.
    pub accepted: bool,
}

impl Controller {
    /// Whether requests may start, and how many.
    pub fn room(&mut self, now: Time) -> Result<u32, Held> {
        if !self.options.is_full() {
            let room = self.level().saturating_sub(self.in_flight());
            return if room == 0 { Err(Held::Full(None)) } else { Ok(room) };
        }
        self.notice_overdue(now);
        self.trouble.ask.allows(now).map_err(Held::Asks)?;
        if self.asks() {
            return Ok(1);
        }
        if self.trouble.run.is_fall(now) {
            self.fell(Reason::Fell, now);
        } else if let Some(until) = self.trouble.run.suspected_until() {
            return Err(Held::Full(Some(until)));
        }
        let level = self.level();
        let (busy, out) = (self.busy(now), self.in_flight());
        let full = Held::Full(self.overdue_at().into_iter().chain(self.out.next_ghost(now)).min());
        if out >= self.trouble.silence.most() {
            return Err(full);
        }
        if busy >= level {
            let probes = busy == level && self.probes_flight(now);
            return if probes { Ok(1) } else { Err(full) };
        }
        if let Some(rate) = self.belief.rate
            && !self.probes_rate(now)
        {
            self.starts.window.allows(rate.at(), now).map_err(Held::Rate)?;
        }
        if self.belief.flight.is_some() {
            self.starts.spread.allows(now).map_err(Held::Spread)?;
        }
        Ok((level - busy).min(self.trouble.silence.most() - out))
    }

    /// Whether the next request is one that asks.
    fn asks(&self) -> bool {
        self.trouble.ask != super::ask::Ask::Over
    }

    /// How many the service is believed to be busy with. The lost are not among them if it has answered
    /// one that started later, unless it often answers late.
    fn busy(&self, now: Time) -> u32 {
        self.out.live() + self.out.missing_after(self.surely_answered(), now)
    }

    /// Requests before this one are answered or lost. A service that slows down, or that often answers late, may
    /// still work on them.
    pub(super) fn surely_answered(&self) -> u64 {
        let slow = self.answers.useful().is_some() || self.trouble.silence.is_mistaken();
        if slow { 0 } else { self.trouble.run.youngest_accepted() }
    }

    /// Whether one request more should be tried in flight.
    fn probes_flight(&mut self, now: Time) -> bool {
        let level = self.level();
        let rate = self.belief.rate.map_or(u32::MAX, |rate| rate.at());
        self.starts.probe.is_none()
            && level < self.options.max
            && self.answers.useful().is_none()
            && self.belief.flight.is_some_and(|at| level >= at.at() && at.probe_is_due(now))
            && self.starts.window.count(now) < rate
    }

    /// Whether one request more should be tried within this second.
    fn probes_rate(&mut self, now: Time) -> bool {
        let Some(rate) = self.belief.rate else { return false };
        self.starts.probe.is_none()
            && rate.probe_is_due(now)
            && self.starts.window.count(now) == rate.at()
    }

    /// A request starts.
    pub fn start(&mut self, now: Time) -> Started {
        let full = self.options.is_full();
        let per_second = if full { self.starts.window.start(now) } else { 0 };
        let role = if full { self.role(per_second, now) } else { Role::Usual };
        let seen = Seen { in_flight: self.busy(now) + 1, per_second };
        let id = self.out.start(Sent { at: now, seen, generation: self.generation, role });
        if matches!(role, Role::ProbesFlight | Role::ProbesRate) {
            self.starts.probe = Some(Probe { id, role, accepted: false });
        }
        if full && self.belief.flight.is_some() {
            self.starts.spread.start(self.level(), self.answers.times(), now);
        }
        Started { at: now, id, trial: role == Role::Asks }
    }

    fn role(&mut self, per_second: u32, now: Time) -> Role {
        if self.trouble.ask.start() {
            return Role::Asks;
        }
        if self.busy(now) >= self.level() {
            return Role::ProbesFlight;
        }
        let probes = |rate: super::Ceiling| per_second > rate.at() && rate.probe_is_due(now);
        let probes = self.starts.probe.is_none() && self.belief.rate.is_some_and(probes);
        if probes { Role::ProbesRate } else { Role::Usual }
    }

    /// When the oldest request without an answer is taken as lost.
    fn overdue_at(&self) -> Option<Time> {
        let (_, at) = self.out.oldest()?;
        Some(at + self.patience()?)
    }

    fn patience(&self) -> Option<Duration> {
        self.answers.overdue_after().map(|after| after.mul_f64(self.trouble.silence.patience()))
    }

    /// Takes requests as lost that have had no answer for much longer than usual.
    fn notice_overdue(&mut self, now: Time) {
        while let (Some((_, at)), Some(patience)) = (self.out.oldest(), self.patience())
            && now >= at + patience
        {
            self.trouble.silence.suspect(self.believed(), self.in_flight());
            let Some((id, sent)) = self.out.lose_oldest(self.answers.round_trip()) else { return };
            self.refused(id, sent, Reason::Overdue, None, now);
            if self.out.live() == 0 {
                let before = self
                    .trouble
                    .silence
                    .before()
                    .filter(|_| self.out.lost() > MANY.max(self.level()));
                self.trouble.fallen_from = self.trouble.fallen_from.take().or(before);
                self.trouble.ask.begin(now + self.silent_for());
            }
        }
    }
}
