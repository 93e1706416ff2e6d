//! Waiting for a sink that is not there.

use std::time::Duration;
use tidegate_pacer::Time;

/// The first pause after the sink was not there, and the longest.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);
/// A sink that was not there for so long may not come back: somebody should know.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Makes everybody wait, longer each time, while a sink is not there. No item is at fault.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaker {
    open: Option<Open>,
    /// It stays open.
    gone: bool,
}

#[derive(Clone, Debug)]
struct Open {
    reason: String,
    since: Time,
    pause: Duration,
    until: Time,
    tripped_at: Time,
}

impl Breaker {
    /// When to send, in the past if at once; `None` if never again.
    pub fn until(&self) -> Option<Time> {
        let until = self.open.as_ref().map_or(Time::ZERO, |open| open.until);
        (!self.gone).then_some(until)
    }

    /// Since when the sink is not there.
    pub fn since(&self) -> Option<Time> {
        self.open.as_ref().map(|open| open.since)
    }

    /// When it was last found not to be there.
    pub fn tripped_at(&self) -> Option<Time> {
        self.open.as_ref().map(|open| open.tripped_at)
    }

    /// Whether nothing may be sent any more.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Why the sink is not there, and how long until the next try.
    pub fn absence(&self, now: Time) -> Option<(String, Duration)> {
        let open = self.open.as_ref()?;
        Some((open.reason.clone(), open.until.saturating_sub(now)))
    }

    /// The sink answered.
    pub fn close(&mut self) {
        if !self.gone {
            self.open = None;
        }
    }

    /// The sink will never be there again.
    pub fn end(&mut self, reason: &str, now: Time) {
        self.gone = true;
        let (reason, pause) = (reason.to_owned(), FIRST);
        self.open = Some(Open { reason, since: now, pause, until: now, tripped_at: now });
    }

    /// Why the sink is not there, and since when.
    pub fn trouble(&self) -> Option<(Time, String)> {
        self.open.as_ref().map(|open| (open.since, open.reason.clone()))
    }

    /// The sink was not there, for a request sent at `sent`; if that is news, it was not there `since` then. Returns
    /// whether there is hope.
    pub fn trip(&mut self, reason: &str, since: Time, sent: Time, now: Time) -> bool {
        match &mut self.open {
            None => {
                let (reason, pause, until) = (reason.to_owned(), FIRST, now + FIRST);
                self.open = Some(Open { reason, since, pause, until, tripped_at: now });
            }
            // Those that were sent together fail together: that is one failure.
            Some(open) if sent <= open.tripped_at => {}
            Some(open) => {
                open.tripped_at = now;
                open.pause = (open.pause * 2).min(LONGEST);
                open.until = now + open.pause;
            }
        }
        self.open.as_ref().is_none_or(|open| now.saturating_sub(open.since) < PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_one_moment_are_one() {
        let mut breaker = Breaker::default();
        let now = Duration::from_secs(9);
        (0..50).for_each(|_| assert!(breaker.trip("gone", now, now, now)));
        let until = now + FIRST;
        assert_eq!(breaker.until(), Some(until));
        assert!(breaker.trip("gone", until, until, until));
        assert_eq!(breaker.until(), Some(until + 2 * FIRST));
        breaker.close();
        assert_eq!(breaker.until(), Some(Time::ZERO));
    }

    #[test]
    fn what_is_gone_stays_gone() {
        let mut breaker = Breaker::default();
        let now = Duration::from_secs(9);
        breaker.end("gone for good", now);
        breaker.close();
        breaker.trip("gone", now, now, now);
        assert_eq!(breaker.until(), None);
        assert_eq!(
            breaker.absence(now).map(|(reason, _)| reason),
            Some("gone for good".to_owned())
        );
    }

    #[test]
    fn hope_ends() {
        let (mut breaker, mut now, mut tries) = (Breaker::default(), Time::ZERO, 0);
        while breaker.trip("gone", now, now, now) {
            now = breaker.until().unwrap_or_default();
            tries += 1;
        }
        assert!(now >= PATIENCE && tries < 60, "{tries}");
    }
}
