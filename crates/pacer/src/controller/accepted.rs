//! What follows from a request that was accepted.

use super::{Before, Controller, Role, Sent, climb::Climb};
use crate::{Time, decision::Reason};

/// So few may well have been too many: they are not tried again at once.
const FEW: u32 = 3;

impl Controller {
    /// A request was accepted, or failed for a reason that has nothing to do with the pace.
    pub(super) fn accepted(&mut self, id: u64, sent: Sent, now: Time) {
        let round_trip = now.saturating_sub(sent.at);
        self.answers.add(id, sent.seen.in_flight, round_trip, self.out.next());
        self.belief.accepted(sent.seen, now);
        self.trouble.run.accepted(id);
        self.out.answered(self.surely_answered(), now);
        if let (Some(counted), Some(ceiling)) =
            (self.trouble.burst.accepted(id), &mut self.belief.flight)
        {
            ceiling.counted(counted);
            self.climb.return_to(counted);
        }
        if sent.role == Role::Asks {
            self.recover(now);
        } else if sent.generation == self.generation {
            self.trouble.fallen_from = None;
        }
        if let Some(probe) = &mut self.starts.probe
            && probe.id == id
        {
            probe.accepted = true;
        }
        if sent.generation == self.generation {
            self.grow(id, sent, now);
        }
        self.keep_useful(now);
    }

    /// The service accepts again, after nothing was accepted: the refusals were no matter of the level.
    fn recover(&mut self, now: Time) {
        self.trouble.ask = super::Ask::Over;
        self.generation += 1;
        if self.out.lost() > 0 {
            self.trouble.silence.confirm();
        }
        let before = self.trouble.fallen_from.take();
        if let Some(Before { belief, level }) = before.filter(|one| one.level > FEW) {
            self.belief = belief;
            self.climb.return_to(level);
        }
        self.raise(self.level(), Reason::Answered, now);
    }

    /// Grows if the level is proven: as many were in flight and nearly all of them were answered.
    fn grow(&mut self, id: u64, sent: Sent, now: Time) {
        let level = self.level();
        let most = self.highest();
        let slack = Climb::slack(level);
        if level >= most
            || sent.seen.in_flight + slack < level
            || self.out.more_before(id, level / 2)
        {
            return;
        }
        self.answers.judge();
        if self.answers.useful().is_some_and(|useful| useful < level) {
            return;
        }
        let reason = match (self.climb.goal().is_some(), self.climb.has_ended()) {
            (true, _) => Reason::Approach,
            (false, false) => Reason::FastStart,
            (false, true) => Reason::Growth,
        };
        let next = self.climb.next(level, self.answers.seem_slower()).min(most);
        if next > level {
            self.raise(next, reason, now);
        }
    }

    /// The highest level that makes sense as far as is known.
    fn highest(&self) -> u32 {
        let ceiling = self.belief.flight.map_or(u32::MAX, |ceiling| ceiling.at());
        let useful = self.answers.useful().unwrap_or(u32::MAX);
        self.options.max.min(ceiling).min(useful)
    }

    /// Falls to the level with the best throughput.
    fn keep_useful(&mut self, now: Time) {
        if let Some(useful) = self.answers.useful()
            && useful < self.level()
        {
            self.climb.end();
            self.climb.forget_goal();
            self.fall(useful, Reason::Inflated, now);
        }
    }

    /// Judges a probe that was accepted, when all that started before it are answered or lost.
    pub(super) fn judge_probe(&mut self, now: Time) {
        let Some(probe) = self.starts.probe.filter(|probe| probe.accepted) else { return };
        if self.out.oldest().is_some_and(|(oldest, _)| oldest < probe.id) {
            return;
        }
        self.starts.probe = None;
        let ceiling = match probe.role {
            Role::ProbesRate => &mut self.belief.rate,
            _ => &mut self.belief.flight,
        };
        let Some(ceiling) = ceiling else { return };
        ceiling.probe_accepted(now);
        if probe.role == Role::ProbesFlight {
            let at = ceiling.at();
            self.whole = None;
            self.raise(at, Reason::ProbeAccepted, now);
        }
    }
}
