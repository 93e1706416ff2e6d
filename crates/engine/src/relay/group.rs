//! What is sent together.

use super::{
    flow::Flow,
    queue::{Fit, Queued},
};
use crate::deliver::Verdicts;
use std::collections::HashMap;
use tidegate_core::outbox::KeyHash;
use tokio::time::Instant;

/// Most bytes of messages in one request, unless a single message has more: bounds the memory.
const MAX_GROUP_BYTES: usize = 1 << 20;

/// Messages that are sent in one request, in their order.
pub(super) struct Group {
    pub sink: usize,
    pub messages: Vec<Queued>,
    /// Those that a later one of the group stands for, with its place.
    pub covered: Vec<(Queued, usize)>,
    /// Since when the oldest of them has waited.
    pub since: Instant,
    /// On the messages, as far as they are known.
    pub verdicts: Verdicts,
}

impl Group {
    pub fn len(&self) -> usize {
        self.messages.len() + self.covered.len()
    }
}

impl Flow {
    /// The next group for a sink, if something can go.
    pub fn next_group(&mut self, sink: usize, messages: usize) -> Option<Group> {
        let plan = &self.plan;
        let coalesces =
            |queued: &Queued| !queued.single && plan.policy(&queued.message.topic).coalesce;
        let fit = Fit { messages, bytes: MAX_GROUP_BYTES };
        let taken = self.queues[sink].take(fit, coalesces);
        let since = taken.iter().map(|queued| queued.since).min()?;
        // From the last to the first: what follows in a key stands for what is before it, if both may.
        let mut next: HashMap<KeyHash, usize> = HashMap::new();
        let mut covered_by: Vec<Option<usize>> = vec![None; taken.len()];
        for (at, queued) in taken.iter().enumerate().rev() {
            let Some(later) = queued.key.and_then(|key| next.insert(key, at)) else { continue };
            let same = taken[later].message.topic == queued.message.topic;
            if same && coalesces(queued) && coalesces(&taken[later]) {
                covered_by[at] = covered_by[later].or(Some(later));
            }
        }
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
        let verdicts = Verdicts::none(kept.len());
        Some(Group { sink, messages: kept, covered, since, verdicts })
    }
}
