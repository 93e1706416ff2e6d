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
    last: Option<Look>,
}

/// A look at everything.
struct Look {
    /// By the store's clock. Nothing that was wanted was due before.
    since: Option<SystemTime>,
    /// When it is repeated.
    again: Instant,
    lanes: Vec<Lane>,
    closed: Vec<String>,
}

impl Looks {
    /// From when on to look; `None`: at everything.
    pub fn since(&self, request: &ClaimRequest, now: Instant) -> Option<SystemTime> {
        let last = self.last.as_ref()?;
        let is_same = last.lanes == request.lanes && last.closed == request.closed;
        last.since.filter(|_| is_same && now < last.again)
    }

    /// Learns from a look at everything that began at `begun`, by the store's clock at `at`. What has been due
    /// for longest has been for `late`.
    pub fn learn(
        &mut self,
        request: &ClaimRequest,
        begun: Instant,
        at: SystemTime,
        late: Duration,
    ) {
        let now = Instant::now();
        self.last = Some(Look {
            since: late.checked_add(SLACK).and_then(|before| at.checked_sub(before)),
            again: now + PAUSE.max((now - begun) * TIMES),
            lanes: request.lanes.clone(),
            closed: request.closed.clone(),
        });
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
        for late in [0, 7].map(Duration::from_secs) {
            looks.learn(&request, begun, at, late);
            assert_eq!(looks.since(&request, begun), Some(at - late - SLACK), "{late:?}");
        }
    }

    #[test]
    fn everything_is_looked_at_when_more_is_wanted_or_it_was_long_ago() {
        let (mut looks, at, begun) = (Looks::default(), SystemTime::now(), Instant::now());
        looks.learn(&request(4, &["down"]), begun, at, Duration::ZERO);
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
        looks.learn(&request, begun, at, Duration::ZERO);
        assert!(looks.since(&request, now + Duration::from_secs(49)).is_some());
        assert_eq!(looks.since(&request, now + Duration::from_secs(52)), None);
    }
}
