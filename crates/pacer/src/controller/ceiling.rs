//! The most that a service accepts, in flight or within a second, as far as is known.
//!
//! A refusal with n is exact evidence: at most n − 1 are accepted. But what is on its way counts as in
//! flight here and not there, so a little more than that may be accepted nearly always. Therefore
//! refusals are tolerated up to one per hundred accepted; whatever a step up costs beyond that is paid back
//! before the next one.

use super::probes::{Probes, Speed};
use crate::Time;

/// What one accepted request earns: one refusal per hundred is tolerated …
const EARNED: f64 = 0.01;
/// … and so many may be saved up.
const SAVED: f64 = 2.0;
/// A ceiling that is lower by more than one in so many has fallen.
const FELL: u32 = 4;

/// The most that is accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ceiling {
    at: u32,
    /// What it was before the last step up.
    before: Option<u32>,
    credit: f64,
    probes: Probes,
}

impl Ceiling {
    /// Found now.
    pub fn found(at: u32, speed: Speed, now: Time) -> Self {
        let probes = Probes::begin(false, speed, now);
        Self { at: at.max(1), before: None, credit: 0.0, probes }
    }

    /// The service fell to this.
    pub fn fell_to(at: u32, speed: Speed, now: Time) -> Self {
        Self { probes: Probes::begin(true, speed, now), ..Self::found(at, speed, now) }
    }

    pub fn at(&self) -> u32 {
        self.at
    }

    /// A request was accepted.
    pub fn accepted(&mut self) {
        self.credit = (self.credit + EARNED).min(SAVED);
    }

    /// One was refused that should not have been. Returns whether that is tolerated.
    pub fn tolerates(&mut self) -> bool {
        let tolerated = self.credit >= 1.0;
        self.credit -= f64::from(u8::from(tolerated));
        tolerated
    }

    /// One more was refused of an event that was dealt with: it is paid back before the next step up.
    pub fn owe(&mut self, speed: Speed, now: Time) {
        self.probes.postpone(speed, now);
    }

    /// It is lower: by a little, or the service fell.
    pub fn lower(&mut self, at: u32, speed: Speed, now: Time) {
        if at < self.at - (self.at / FELL).max(1) {
            *self = Self::fell_to(at, speed, now);
        } else if at < self.at {
            (self.at, self.before) = (at.max(1), None);
        }
    }

    /// So many were accepted at the same time.
    pub fn counted(&mut self, at: u32) {
        (self.at, self.before) = (at.max(1), None);
    }

    /// One was refused that is not tolerated: the last step up is taken back, if there was one.
    pub fn step_back(&mut self, most: u32, speed: Speed, now: Time) {
        match self.before.take() {
            Some(before) => {
                self.at = before.min(self.at);
                self.probes.in_vain(speed, now);
                self.probes.postpone(speed, now);
            }
            None => self.lower(most, speed, now),
        }
    }

    /// Whether one request should be tried above it.
    pub fn probe_is_due(&self, now: Time) -> bool {
        self.probes.is_due(now)
    }

    /// The probe was accepted: the ceiling is higher.
    pub fn probe_accepted(&mut self, now: Time) {
        self.before = Some(self.at);
        self.at = self.at.saturating_add(self.probes.accepted(self.at, now));
    }

    /// The probe was refused.
    pub fn probe_refused(&mut self, speed: Speed, now: Time) {
        self.probes.refused(speed, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SPEED: Speed =
        Speed { round_trip: Duration::from_millis(100), per_second: 50.0, cost: Duration::ZERO };

    fn ceiling() -> Ceiling {
        Ceiling::found(20, SPEED, Time::ZERO)
    }

    #[test]
    fn one_refusal_in_a_hundred_is_tolerated() {
        let mut ceiling = ceiling();
        (0..101).for_each(|_| ceiling.accepted());
        assert!(ceiling.tolerates() && !ceiling.tolerates());
    }

    #[test]
    fn what_a_step_up_cost_is_paid_back_before_the_next() {
        let (mut ceiling, now) = (ceiling(), Duration::from_secs(1_000));
        ceiling.probe_accepted(now);
        assert_eq!(ceiling.at(), 21);
        ceiling.step_back(20, SPEED, now);
        assert_eq!(ceiling.at(), 20);
        (0..2).for_each(|_| ceiling.owe(SPEED, now));
        assert!(!ceiling.probe_is_due(now + Duration::from_secs(6)));
        (0..50).for_each(|_| ceiling.owe(SPEED, now));
        assert!(ceiling.probe_is_due(now + Duration::from_secs(10)), "but not for ever");
    }

    #[test]
    fn a_refusal_takes_back_the_last_step() {
        let mut ceiling = ceiling();
        (0..4).for_each(|_| ceiling.probe_accepted(Time::ZERO));
        assert_eq!(ceiling.at(), 35);
        ceiling.step_back(34, SPEED, Time::ZERO);
        assert_eq!(ceiling.at(), 27);
        ceiling.step_back(26, SPEED, Time::ZERO);
        assert_eq!(ceiling.at(), 26);
    }
}
