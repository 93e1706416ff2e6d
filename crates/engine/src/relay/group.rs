//! What is sent together.

use super::{
    flow::Flow,
    queue::{Fit, Queued},
};
use crate::deliver::Verdicts;
use std::collections::HashMap;
use tokio::time::Instant;

/// Most bytes of messages in one request, unless a single message has more: bounds the memory.
const MAX_GROUP_BYTES: usize = 1 << 20;

/// Messages that are sent in one request, in their order.
pub(super) struct Group {
    pub sink: usize,
    /// The destination within the sink.
    pub place: String,
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
    /// The next group for a sink, if something can go: `may` says how many messages a destination may get.
    pub fn next_group(
        &mut self,
        sink: usize,
        may: impl FnMut(&String) -> Option<usize>,
    ) -> Option<Group> {
        let (place, messages) = self.queues[sink].choose(may)?;
        let plan = &self.plan;
        let coalesces =
            |queued: &Queued| !queued.single && plan.policy(&queued.message.topic).coalesce;
        let fit = Fit { messages, bytes: MAX_GROUP_BYTES };
        let taken = self.queues[sink].take(&place, fit, coalesces);
        let since = taken.iter().map(|queued| queued.since).min()?;
        // From the last to the first: what follows in a key stands for what is before it, if both may.
        // Keys themselves are compared: two with one hash have nothing to do with each other.
        let mut next: HashMap<&str, usize> = HashMap::new();
        let mut covered_by: Vec<Option<usize>> = vec![None; taken.len()];
        for (at, queued) in taken.iter().enumerate().rev() {
            let key = queued.message.key.as_deref().filter(|_| queued.key.is_some());
            let Some(later) = key.and_then(|key| next.insert(key, at)) else { continue };
            if queued.is_same(&taken[later]) && coalesces(queued) && coalesces(&taken[later]) {
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
        Some(Group { sink, place, messages: kept, covered, since, verdicts })
    }
}
