//! Changes of the item of leases, as DynamoDB takes them. Pure.

use super::state::{Held, Leases, Plan, Relay, name_of};
use crate::item::{Item, number};
use std::collections::HashMap;
use tidegate_core::{
    Fence,
    outbox::{Lane, LaneLease},
    stamp,
};

/// An update, and the condition under which it is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub update: String,
    pub condition: String,
    pub names: HashMap<String, String>,
    pub values: Item,
}

impl Change {
    /// A relay says that it lives. `known` is the beat that it wrote last: if another one is there, somebody took it
    /// for dead, or the table went back in time.
    pub fn beat(name: &str, relay: Relay, known: Option<i64>) -> Self {
        let mut values = Item::from([(":me".to_owned(), relay.value())]);
        let condition = match known {
            None => "attribute_exists(Epoch)".to_owned(),
            Some(known) => {
                values.insert(":known".to_owned(), number(known));
                // Or its own, if the answer to the first copy of this was lost.
                values.insert(":mine".to_owned(), number(relay.beat));
                "Relays.#me.Beat IN (:known, :mine)".to_owned()
            }
        };
        let names = HashMap::from([("#me".to_owned(), name.to_owned())]);
        Self { update: "SET Relays.#me = :me".to_owned(), condition, names, values }
    }

    /// A relay takes lanes, and forgets relays that are gone. Returns the leases that it has then.
    pub fn take(name: &str, leases: &Leases, plan: &Plan, noise: u64) -> (Self, Vec<LaneLease>) {
        let mut change = Self::new(leases);
        let mut taken = Vec::new();
        for (lane, n) in plan.take.iter().zip(1..) {
            // With random bits: after the table went back in time, nobody gets a fence that somebody still holds.
            let fence = Fence(stamp::stamp(leases.last_fence + n, noise));
            change.set_lane(&Held { relay: name.to_owned(), fence }, &name_of(*lane));
            taken.push(LaneLease { lane: *lane, fence });
        }
        plan.free.iter().for_each(|lane| change.free_lane(*lane));
        change.set("LastFence", number(leases.last_fence + taken.len() as i64));
        change.forget(&plan.gone);
        (change, taken)
    }

    /// A relay does without lanes. Nothing of those that it does not have any more.
    pub fn give_back(name: &str, leases: &Leases, lanes: &[LaneLease], ends: bool) -> Self {
        let mut change = Self::new(leases);
        let is_held = |lease: &&LaneLease| {
            let held = leases.lanes.get(&lease.lane);
            held.is_some_and(|held| held.relay == name && held.fence == lease.fence)
        };
        lanes.iter().filter(is_held).for_each(|lease| change.free_lane(lease.lane));
        if ends && leases.relays.contains_key(name) {
            change.forget(&[name.to_owned()]);
        }
        change
    }

    fn new(leases: &Leases) -> Self {
        let mut change = Self {
            update: "SET".to_owned(),
            condition: "Version = :seen".to_owned(),
            names: HashMap::new(),
            values: Item::from([(":seen".to_owned(), number(leases.version))]),
        };
        change.set("Version", number(leases.version + 1));
        change
    }

    fn set(&mut self, attribute: &str, value: aws_sdk_dynamodb::types::AttributeValue) {
        let comma = if self.update.ends_with("SET") { "" } else { "," };
        self.update.push_str(&format!("{comma} {attribute} = :{attribute}"));
        self.values.insert(format!(":{attribute}"), value);
    }

    fn set_lane(&mut self, held: &Held, name: &str) {
        self.update.push_str(&format!(", Lanes.{name} = :{name}"));
        self.values.insert(format!(":{name}"), held.value());
    }

    fn free_lane(&mut self, lane: Lane) {
        let nobody = Held { relay: String::new(), fence: Fence::NOBODY };
        self.set_lane(&nobody, &name_of(lane));
    }

    fn forget(&mut self, relays: &[String]) {
        for (n, relay) in relays.iter().enumerate() {
            let comma = if n == 0 { " REMOVE" } else { "," };
            self.update.push_str(&format!("{comma} Relays.#gone{n}"));
            self.names.insert(format!("#gone{n}"), relay.clone());
        }
    }
}

/// The condition that a relay still has lanes, with its values.
pub(crate) fn holds(lanes: &[LaneLease]) -> (String, Item) {
    let part = |lease: &LaneLease| format!("Lanes.{0}.Fence = :{0}", name_of(lease.lane));
    let value = |lease: &LaneLease| (format!(":{}", name_of(lease.lane)), number(lease.fence.0));
    let parts: Vec<String> = lanes.iter().map(part).collect();
    (parts.join(" AND "), lanes.iter().map(value).collect())
}
