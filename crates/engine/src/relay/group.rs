//! What is sent together.

use super::{
    flow::Flow,
    queue::{Fit, Queued},
};
use std::collections::HashMap;
use tidegate_core::outbox::KeyHash;
use tokio::time::Instant;

/// Most bytes of payload in one request, unless a single message has more: bounds the memory.
const MAX_GROUP_BYTES: usize = 1 << 20;

/// Messages that are sent in one request, in their order.
pub(super) struct Group {
    pub sink: usize,
    pub messages: Vec<Queued>,
    /// Those that a later one of the group stands for, with its place.
    pub covered: Vec<(Queued, usize)>,
    /// Since when the oldest of them has waited.
    pub since: Instant,
}

impl Group {
    pub fn len(&self) -> usize {
        self.messages.len() + self.covered.len()
    }
}

impl Flow {
    /// The next group for a sink, if something can go.
    pub fn next_group(&mut self, sink: usize, messages: usize) -> Option<Group> {
        let taken = self.queues[sink].take(Fit { messages, bytes: MAX_GROUP_BYTES });
        let since = taken.iter().map(|queued| queued.since).min()?;
        let coalesces =
            |queued: &Queued| !queued.single && self.plan.policy(&queued.message.topic).coalesce;
        let mut last: HashMap<(KeyHash, &str), usize> = HashMap::new();
        for (at, queued) in taken.iter().enumerate().filter(|(_, queued)| coalesces(queued)) {
            queued.key.map(|key| last.insert((key, &queued.message.topic), at));
        }
        let stands_for = |at: usize, queued: &Queued| {
            let later = last.get(&(queued.key?, queued.message.topic.as_str())).copied()?;
            (later > at && coalesces(queued)).then_some(later)
        };
        let covered_by: Vec<Option<usize>> =
            taken.iter().enumerate().map(|(at, queued)| stands_for(at, queued)).collect();
        let mut places: HashMap<usize, usize> = HashMap::new();
        for (place, (at, _)) in
            covered_by.iter().enumerate().filter(|(_, by)| by.is_none()).enumerate()
        {
            places.insert(at, place);
        }
        let (mut kept, mut covered) = (Vec::new(), Vec::new());
        for (queued, by) in taken.into_iter().zip(covered_by) {
            match by.and_then(|later| places.get(&later)) {
                Some(place) => covered.push((queued, *place)),
                None => kept.push(queued),
            }
        }
        Some(Group { sink, messages: kept, covered, since })
    }
}
