//! Which lanes are surely this relay's, without asking. Pure.

use super::Leases;
use std::{collections::BTreeMap, time::Instant};
use tidegate_core::{
    Fence,
    outbox::{Lane, LaneLease},
};

/// What a relay held when it last said that it lives. Nobody takes its lanes before its lease has passed since then.
#[derive(Debug, Default)]
pub(crate) struct Tenure {
    until: Option<Instant>,
    lanes: BTreeMap<Lane, Fence>,
}

impl Tenure {
    /// The relay has said that it lives, and this is what the item said afterwards.
    pub fn renew(&mut self, relay: &str, leases: &Leases, until: Instant) {
        let own = leases.lanes.iter().filter(|(_, held)| held.relay == relay);
        self.lanes = own.map(|(lane, held)| (*lane, held.fence)).collect();
        self.until = Some(until);
    }

    pub fn give_back(&mut self, lanes: &[LaneLease]) {
        self.lanes.retain(|lane, _| lanes.iter().all(|lease| lease.lane != *lane));
    }

    /// Those of some leases that do not hold any more; `None` if that is not known.
    pub fn late(&self, leases: &[LaneLease], now: Instant) -> Option<Vec<Lane>> {
        self.until.filter(|until| now < *until)?;
        let is_late = |lease: &&LaneLease| self.lanes.get(&lease.lane) != Some(&lease.fence);
        Some(leases.iter().filter(is_late).map(|lease| lease.lane).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::state::Held, *};
    use std::time::Duration;

    #[test]
    fn lanes_are_surely_held_until_the_lease_is_over() {
        let (mut tenure, now) = (Tenure::default(), Instant::now());
        let lease = |lane, fence| LaneLease { lane: Lane(lane), fence: Fence(fence) };
        let leases = [lease(1, 10), lease(2, 20), lease(3, 30)];
        assert_eq!(tenure.late(&leases, now), None, "nothing was said yet");
        let mut item = Leases::default();
        for (lane, relay, fence) in [(1, "a", 10), (2, "a", 21), (3, "b", 30)] {
            let held = Held { relay: relay.to_owned(), fence: Fence(fence) };
            item.lanes.insert(Lane(lane), held);
        }
        let until = now + Duration::from_secs(10);
        tenure.renew("a", &item, until);
        assert_eq!(tenure.late(&leases, now), Some(vec![Lane(2), Lane(3)]));
        tenure.give_back(&leases[..1]);
        assert_eq!(tenure.late(&leases[..1], now), Some(vec![Lane(1)]));
        assert_eq!(tenure.late(&leases, until), None, "somebody may have taken them");
    }
}
