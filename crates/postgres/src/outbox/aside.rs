//! From when on to look for what was set aside and is due.
//!
//! What is done leaves its index entry behind for as long as a snapshot is open that may see it, and the oldest
//! come first. So a look at everything is followed by looks at what became due since. What a later look could
//! miss, the next look at everything finds: what is wanted again although it did not change, which is seldom.

use std::time::{Duration, Instant, SystemTime};
use tidegate_core::outbox::{ClaimRequest, Lane};

/// A statement that writes what is due may have begun so long before it can be seen.
const SLACK: Duration = Duration::from_secs(60);

/// A look at everything comes at the earliest after this, and after so many times what the last one took: the
/// others are not slowed down by it.
const PAUSE: Duration = Duration::from_secs(1);
const TIMES: u32 = 50;

#[derive(Default)]
pub(super) struct Looks {
    /// By the store's clock. Nothing that was wanted was due before.
    since: Option<SystemTime>,
    /// When everything is looked at again, for those who wanted this.
    again: Option<(Instant, Vec<Lane>, Vec<String>)>,
}

impl Looks {
    /// From when on to look; `None`: at everything.
    pub fn since(&self, request: &ClaimRequest, now: Instant) -> Option<SystemTime> {
        let (again, lanes, closed) = self.again.as_ref()?;
        let is_same = now < *again && *lanes == request.lanes && *closed == request.closed;
        self.since.filter(|_| is_same)
    }

    /// Learns from a look at everything that began at `begun`, by the store's clock at `at`.
    pub fn learn(
        &mut self,
        request: &ClaimRequest,
        begun: Instant,
        at: SystemTime,
        next_due: Option<Duration>,
    ) {
        let is_nothing_due = next_due.is_none_or(|next| !next.is_zero());
        self.since = at.checked_sub(SLACK).filter(|_| is_nothing_due);
        let now = Instant::now();
        let pause = PAUSE.max((now - begun) * TIMES);
        self.again = Some((now + pause, request.lanes.clone(), request.closed.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(lanes: u16, closed: &[&str]) -> ClaimRequest {
        let closed = closed.iter().map(|sink| (*sink).to_owned()).collect();
        ClaimRequest { lanes: (0..lanes).map(Lane).collect(), closed, ..ClaimRequest::default() }
    }

    #[test]
    fn after_a_look_at_everything_only_what_is_new_is_looked_at() {
        let (mut looks, request, at) = (Looks::default(), request(4, &[]), SystemTime::now());
        let begun = Instant::now();
        assert_eq!(looks.since(&request, begun), None);
        for (next_due, since) in [
            (None, Some(at - SLACK)),
            (Some(Duration::from_millis(1)), Some(at - SLACK)),
            (Some(Duration::ZERO), None),
        ] {
            looks.learn(&request, begun, at, next_due);
            assert_eq!(looks.since(&request, begun), since, "{next_due:?}");
        }
    }

    #[test]
    fn everything_is_looked_at_when_more_is_wanted_or_it_was_long_ago() {
        let (mut looks, at, begun) = (Looks::default(), SystemTime::now(), Instant::now());
        looks.learn(&request(4, &["down"]), begun, at, None);
        assert!(looks.since(&request(4, &["down"]), begun).is_some());
        assert_eq!(looks.since(&request(5, &["down"]), begun), None, "a lane was gained");
        assert_eq!(looks.since(&request(4, &[]), begun), None, "a sink is there again");
        assert_eq!(looks.since(&request(4, &["down"]), begun + PAUSE * 2), None);
    }

    #[test]
    fn a_long_look_is_repeated_seldom() {
        let (mut looks, request, at) = (Looks::default(), request(4, &[]), SystemTime::now());
        let now = Instant::now();
        let Some(begun) = now.checked_sub(Duration::from_secs(1)) else { return };
        looks.learn(&request, begun, at, None);
        assert!(looks.since(&request, now + Duration::from_secs(49)).is_some());
        assert_eq!(looks.since(&request, now + Duration::from_secs(52)), None);
    }
}
