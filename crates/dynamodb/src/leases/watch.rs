//! Which relays are gone, by this process's own clock.

use super::state::Leases;
use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

/// What was seen of other relays.
#[derive(Debug, Default)]
pub(crate) struct Watch(HashMap<String, (i64, Instant)>);

impl Watch {
    /// Sees the item, and says which relays are gone: those whose beat is the same for longer than their lease. Two
    /// clocks may run at slightly different speeds, which a tenth more allows for.
    pub fn see(&mut self, leases: &Leases, now: Instant) -> BTreeSet<String> {
        self.0.retain(|name, _| leases.relays.contains_key(name));
        let mut gone = BTreeSet::new();
        for (name, relay) in &leases.relays {
            let seen = self.0.entry(name.clone()).or_insert((relay.beat, now));
            if seen.0 != relay.beat {
                *seen = (relay.beat, now);
            }
            if now.saturating_duration_since(seen.1) > patience(relay.lease) {
                gone.insert(name.clone());
            }
        }
        gone
    }
}

fn patience(lease: Duration) -> Duration {
    lease + lease / 10
}

#[cfg(test)]
mod tests {
    use super::{super::state::Relay, *};

    #[test]
    fn a_relay_is_gone_when_its_beat_stands_still_for_its_lease() {
        let (mut watch, start) = (Watch::default(), Instant::now());
        let mut leases = Leases::default();
        let beat = |leases: &mut Leases, beat: i64| {
            let relay = Relay { beat, lease: Duration::from_secs(10), at_ms: 0 };
            leases.relays.insert("a".to_owned(), relay);
        };
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        beat(&mut leases, 1);
        // What it wrote may be old when it is seen first: it has its whole lease from then on.
        assert!(watch.see(&leases, after(0)).is_empty());
        assert!(watch.see(&leases, after(11)).is_empty());
        beat(&mut leases, 2);
        assert!(watch.see(&leases, after(12)).is_empty());
        assert!(watch.see(&leases, after(23)).is_empty());
        assert_eq!(watch.see(&leases, after(24)), BTreeSet::from(["a".to_owned()]));
        leases.relays.clear();
        assert!(watch.see(&leases, after(25)).is_empty());
    }
}
