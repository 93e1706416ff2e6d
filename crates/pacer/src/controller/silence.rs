//! Requests without an answer: taken as lost early, but a late answer undoes what that caused.
//!
//! A service that drops requests tells of it only by the time-out of the caller, many round trips
//! later. So a request that is overdue counts as lost. But it may be a service that became slow:
//! then to fill the places of the overdue would make it slower still. Until a real time-out has confirmed a
//! loss, there are never more requests out in total than when the first one was taken as lost.

use super::Before;

/// With each time-out that confirms a loss, late answers are forgiven by this.
const FORGIVEN: f64 = 0.7;
/// However often answers came late, patience is at most this much more.
const MOST_PATIENT: f64 = 8.0;

/// What is known of requests that were taken as lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Silence {
    /// What was believed before the first of them: until it is confirmed or undone.
    before: Option<Before>,
    /// How many requests were out in total then.
    most: Option<u32>,
    /// Late answers, and …
    late: f64,
    /// … losses that a time-out confirmed.
    confirmed: f64,
}

impl Silence {
    /// A request is taken as lost, with so many out in total.
    pub fn suspect(&mut self, before: Before, out: u32) {
        self.before.get_or_insert(before);
        if self.confirmed < 1.0 {
            self.most.get_or_insert(out);
        }
    }

    /// What was believed before the first of those that are missing.
    pub fn before(&self) -> Option<Before> {
        self.before.clone()
    }

    /// One that was taken as lost was answered after all. Returns what was believed before.
    pub fn answered_late(&mut self) -> Option<Before> {
        self.late += 1.0;
        self.before.take()
    }

    /// A time-out, or another answer, confirmed that it is lost.
    pub fn confirm(&mut self) {
        self.confirmed += 1.0;
        self.late *= FORGIVEN;
        (self.before, self.most) = (None, None);
    }

    /// Nothing is missing anymore.
    pub fn over(&mut self) {
        self.most = None;
    }

    /// How many may be out in total.
    pub fn most(&self) -> u32 {
        self.most.unwrap_or(u32::MAX)
    }

    /// Whether the overdue have so often been answered late that they count as in flight.
    pub fn is_mistaken(&self) -> bool {
        self.late > self.confirmed
    }

    /// How many times longer than usual an answer is waited for.
    pub fn patience(&self) -> f64 {
        (1.0 + self.late / (1.0 + self.confirmed)).min(MOST_PATIENT)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Belief, *};

    fn at(level: u32) -> Before {
        Before { belief: Belief::default(), level }
    }

    #[test]
    fn a_late_answer_brings_back_what_was_believed() {
        let mut silence = Silence::default();
        silence.suspect(at(20), 32);
        silence.suspect(at(10), 40);
        assert_eq!((silence.most(), silence.is_mistaken()), (32, false));
        assert_eq!(silence.answered_late().map(|before| before.level), Some(20));
        assert!(silence.answered_late().is_none() && silence.is_mistaken());
        assert!(silence.patience() > 2.0);
    }

    #[test]
    fn a_time_out_confirms_the_loss() {
        let mut silence = Silence::default();
        silence.suspect(at(20), 32);
        silence.confirm();
        assert_eq!(silence.most(), u32::MAX);
        assert!(silence.answered_late().is_none(), "what followed stays");
        silence.suspect(at(20), 32);
        assert_eq!(silence.most(), u32::MAX, "this service drops requests");
    }
}
