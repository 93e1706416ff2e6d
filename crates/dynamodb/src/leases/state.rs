//! What the item says, and who should have which lanes. Pure.

use crate::item::{Item, get_number, get_text, number, text};
use aws_sdk_dynamodb::types::AttributeValue;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tidegate_core::{
    Fence,
    outbox::{Epoch, LANES, Lane, LaneLease},
};

/// Who lives, and who has which lanes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Leases {
    pub epoch: Epoch,
    /// Grows whenever lanes change hands.
    pub version: i64,
    /// The last number that was given to a lease.
    pub last_fence: i64,
    /// Changes when people have decided about the dead.
    pub steered: i64,
    pub relays: BTreeMap<String, Relay>,
    pub lanes: BTreeMap<Lane, Held>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Relay {
    pub beat: i64,
    pub lease: Duration,
    /// When it wrote this, by its own clock, in milliseconds since 1970. For people.
    pub at_ms: i64,
}

/// Who has a lane; nobody if the name is empty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    pub relay: String,
    pub fence: Fence,
}

/// What should change for a relay that asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// It holds these no longer.
    pub lost: Vec<Lane>,
    /// It should take these.
    pub take: Vec<Lane>,
    /// It has these without knowing, and above its share: nobody should have them.
    pub free: Vec<Lane>,
    /// It has so many above its share.
    pub surplus: usize,
    /// So many relays live.
    pub relays: usize,
    /// These do not live any more.
    pub gone: Vec<String>,
}

impl Plan {
    pub fn changes_nothing(&self) -> bool {
        self.take.is_empty() && self.free.is_empty() && self.gone.is_empty()
    }
}

impl Leases {
    /// What a relay should have, and what it holds no longer. `gone` are relays that do not live any more.
    pub fn plan(&self, relay: &str, held: &[LaneLease], gone: &BTreeSet<String>) -> Plan {
        let is_kept = |lease: &&LaneLease| {
            let held = self.lanes.get(&lease.lane);
            held.is_some_and(|held| held.relay == relay && held.fence == lease.fence)
        };
        let (kept, lost): (Vec<&LaneLease>, Vec<_>) = held.iter().partition(is_kept);
        let lives = |name: &str| self.relays.contains_key(name) && !gone.contains(name);
        let others = self.relays.keys().filter(|name| *name != relay && lives(name)).count();
        let share = usize::from(LANES).div_ceil(others + 1);
        let is_free = |lane: &Lane| match self.lanes.get(lane) {
            None => true,
            // Of its own lanes it may not know, because the answer that gave them was lost.
            Some(held) if held.relay == relay => kept.iter().all(|lease| lease.lane != *lane),
            Some(held) => !lives(&held.relay),
        };
        let mut free = Lane::all().filter(is_free);
        let take: Vec<Lane> = free.by_ref().take(share.saturating_sub(kept.len())).collect();
        let is_its_own = |lane: &Lane| self.lanes.get(lane).is_some_and(|it| it.relay == relay);
        Plan {
            lost: lost.iter().map(|lease| lease.lane).collect(),
            take,
            free: free.filter(is_its_own).collect(),
            surplus: kept.len().saturating_sub(share),
            relays: others + 1,
            gone: self
                .relays
                .keys()
                .filter(|name| *name != relay && !lives(name))
                .cloned()
                .collect(),
        }
    }

    /// How many lanes each relay has.
    pub fn lanes_of(&self, relay: &str) -> usize {
        self.lanes.values().filter(|held| held.relay == relay).count()
    }

    pub fn read(item: &Item) -> Option<Self> {
        let map = |name: &str| item.get(name).and_then(|value| value.as_m().ok());
        let mut leases = Self {
            epoch: Epoch(get_text(item, "Epoch")?.to_owned()),
            version: get_number(item, "Version")?,
            last_fence: get_number(item, "LastFence")?,
            steered: get_number(item, "Steered")?,
            ..Self::default()
        };
        for (name, relay) in map("Relays")? {
            leases.relays.insert(name.clone(), Relay::read(relay.as_m().ok()?)?);
        }
        for (name, held) in map("Lanes")? {
            leases.lanes.insert(lane_of(name)?, Held::read(held.as_m().ok()?)?);
        }
        Some(leases)
    }

    /// As it is at first: nobody lives, and nothing is leased.
    pub fn first(epoch: &str) -> Item {
        let map = || AttributeValue::M(Default::default());
        Item::from([
            ("Epoch".to_owned(), text(epoch)),
            ("Version".to_owned(), number(0)),
            ("LastFence".to_owned(), number(0)),
            ("Steered".to_owned(), number(0)),
            ("Relays".to_owned(), map()),
            ("Lanes".to_owned(), map()),
        ])
    }
}

impl Relay {
    fn read(item: &Item) -> Option<Self> {
        Some(Self {
            beat: get_number(item, "Beat")?,
            lease: Duration::from_millis(get_number(item, "LeaseMs")?),
            at_ms: get_number(item, "AtMs")?,
        })
    }

    pub fn value(&self) -> AttributeValue {
        AttributeValue::M(Item::from([
            ("Beat".to_owned(), number(self.beat)),
            ("LeaseMs".to_owned(), number(self.lease.as_millis())),
            ("AtMs".to_owned(), number(self.at_ms)),
        ]))
    }
}

impl Held {
    fn read(item: &Item) -> Option<Self> {
        let relay = get_text(item, "Relay")?.to_owned();
        Some(Self { relay, fence: Fence(get_number(item, "Fence")?) })
    }

    pub fn value(&self) -> AttributeValue {
        AttributeValue::M(Item::from([
            ("Relay".to_owned(), text(&self.relay)),
            ("Fence".to_owned(), number(self.fence.0)),
        ]))
    }
}

/// The name of a lane within the item.
pub(super) fn name_of(lane: Lane) -> String {
    format!("l{:02}", lane.0)
}

fn lane_of(name: &str) -> Option<Lane> {
    name.strip_prefix('l')?.parse().ok().filter(|lane| *lane < LANES).map(Lane)
}

#[cfg(test)]
mod tests;
