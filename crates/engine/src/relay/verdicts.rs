//! What follows from the verdicts on a group.

use super::{
    flow::{Flow, set, shown},
    group::Group,
    queue::Queued,
};
use crate::backoff::mix;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};
use tidegate_core::{
    outbox::{Aside, KeyHash, Lane, OnDead, Origin, StuckState},
    settle::storable,
    sink::Verdict,
};

/// How long a message waits that a sink is too busy for, if the sink does not say.
const BUSY: Duration = Duration::from_secs(1);

impl Flow {
    /// A group came back. Those without a verdict were not sent.
    pub fn answered(&mut self, group: Group, verdicts: Vec<Option<Verdict>>) {
        let (sink, messages) = (group.sink, group.len());
        let mut keys: BTreeSet<KeyHash> =
            group.messages.iter().filter_map(|queued| queued.key).collect();
        let mut again: BTreeMap<KeyHash, Vec<Queued>> = BTreeMap::new();
        let mut held: BTreeSet<KeyHash> = BTreeSet::new();
        let mut given_up: Vec<(Lane, KeyHash)> = Vec::new();
        let undone = self.answer_covered(group.covered, &verdicts, &mut again);
        for (at, (queued, verdict)) in group.messages.into_iter().zip(verdicts).enumerate() {
            if !self.is_held(&queued) {
                continue;
            }
            match verdict {
                // Those that it stood for must go first, each by itself.
                Some(_) if undone.contains(&at) => keep(&mut again, alone(queued)),
                Some(Verdict::Done) => self.deliver(queued),
                // Its key means no order here: it was held back for others.
                None | Some(Verdict::Behind) if queued.key.is_none() => {
                    self.queues[sink].push(queued);
                }
                None => keep(&mut again, queued),
                Some(Verdict::Behind) => keep(&mut again, alone(queued)),
                Some(verdict) => {
                    let (lane, key) = (queued.message.lane, queued.key);
                    match self.fail(queued, verdict) {
                        Rest::Waits => held.extend(key),
                        Rest::GoesOn => given_up.extend(key.map(|key| (lane, key))),
                    }
                }
            }
        }
        for key in &held {
            let mut behind = again.remove(key).unwrap_or_default();
            behind.extend(self.queues[sink].take_out(*key));
            behind.into_iter().for_each(|queued| self.wait_behind(queued));
        }
        for (key, mut queued) in again {
            queued.sort_by_key(Queued::position);
            self.queues[sink].put_back(key, queued.into_iter());
        }
        // A crash before the store knows would send it once more, after those behind it.
        given_up.retain(|(_, key)| keys.remove(key));
        self.given_up.extend(given_up.into_iter().map(|(lane, key)| (lane, sink, key, false)));
        self.queues[sink].finished(messages, keys);
        self.clear_out();
    }

    /// Messages that a later one stood for are done with it. Otherwise they are sent by themselves, and
    /// so is the later one; returns the places of such.
    fn answer_covered(
        &mut self,
        covered: Vec<(Queued, usize)>,
        verdicts: &[Option<Verdict>],
        again: &mut BTreeMap<KeyHash, Vec<Queued>>,
    ) -> BTreeSet<usize> {
        let mut undone = BTreeSet::new();
        for (queued, place) in covered {
            match verdicts.get(place).and_then(Option::as_ref) {
                _ if !self.is_held(&queued) => {}
                Some(Verdict::Done) => {
                    self.counts.coalesced += 1;
                    self.close(queued);
                }
                None => keep(again, queued),
                Some(_) => {
                    undone.insert(place);
                    keep(again, alone(queued));
                }
            }
        }
        undone
    }

    /// Whether the lane that a message was read from is still this relay's.
    pub fn is_held(&self, queued: &Queued) -> bool {
        self.lanes.get(&queued.message.lane).is_some_and(|lane| lane.fence == queued.fence)
    }

    fn deliver(&mut self, queued: Queued) {
        self.counts.delivered += 1;
        self.close(queued);
    }

    fn close(&mut self, queued: Queued) {
        let Some(lane) = self.lanes.get_mut(&queued.message.lane) else { return };
        match queued.aside.is_some() {
            true => lane.done(queued.line, queued.position()),
            false => {
                lane.close(queued.line, queued.position());
                self.held.closed(self.plan.sink_of(&queued.message.topic), queued.key);
            }
        }
        if queued.aside.is_some() || self.by_state {
            self.done.push((queued.message.lane, queued.position()));
        }
    }

    /// A message was not delivered.
    fn fail(&mut self, queued: Queued, verdict: Verdict) -> Rest {
        let policy = self.plan.policy(&queued.message.topic);
        let before = queued.aside.unwrap_or(0);
        let attempts = before + 1;
        let jitter = mix(queued.position().0 as u64 ^ u64::from(attempts) << 48);
        let dead = |attempts, reason| Aside::Dead {
            attempts,
            reason: storable(reason),
            then: policy.on_dead,
        };
        if let Verdict::Throttled { .. } | Verdict::Unavailable(_) = &verdict {
            self.counts.put_off += 1;
            self.tell_wait(&queued);
        }
        let aside = match verdict {
            Verdict::Retry(reason) => match policy.retry.delay(attempts, jitter) {
                Some(delay) => Aside::Retry { attempts, reason: storable(reason), delay },
                None => dead(attempts, reason),
            },
            Verdict::Throttled { retry_after } => Aside::Retry {
                attempts: before,
                reason: "the sink is too busy".to_owned(),
                delay: retry_after.unwrap_or(BUSY),
            },
            Verdict::Unavailable(reason) => {
                Aside::Retry { attempts: before, reason: storable(reason), delay: BUSY }
            }
            Verdict::Dead(reason) => dead(attempts, reason),
            Verdict::Done | Verdict::Behind => return Rest::GoesOn,
        };
        let rest = match &aside {
            Aside::Dead { then, reason, .. } => {
                self.died(&queued.message.id, &queued.message.topic, reason);
                if *then == OnDead::Skip { Rest::GoesOn } else { Rest::Waits }
            }
            _ => {
                self.counts.retried += 1;
                Rest::Waits
            }
        };
        self.move_aside(queued, aside);
        rest
    }

    /// Says of each topic once that a message has waited for long and is still not taken: that uses up no
    /// attempt, and may go on for ever.
    fn tell_wait(&mut self, queued: &Queued) {
        let published = Duration::from_millis(queued.message.published_ms.unsigned_abs());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let waited = now.saturating_sub(published);
        if queued.aside.is_some()
            && waited >= self.stalled_after
            && self.is_new(&queued.message.topic, "waits")
        {
            let (id, minutes) = (&queued.message.id, waited.as_secs() / 60);
            tracing::warn!(
                "message {id} on {} was published {minutes} minutes ago, and its sink still puts it off",
                shown(&queued.message.topic)
            );
        }
    }

    /// A message waits for what was set aside of its key. One that did so before still does.
    pub fn wait_behind(&mut self, queued: Queued) {
        if !self.is_held(&queued) {
            return;
        }
        match queued.message.origin {
            Origin::Aside { waited_for: StuckState::Behind, .. } => {
                self.under_way.remove(&queued.position());
            }
            _ => self.move_aside(queued, Aside::Behind),
        }
    }

    pub fn move_aside(&mut self, queued: Queued, aside: Aside) {
        let stored = match &queued.message.origin {
            Origin::Aside { sink, .. } => self.plan.sink_named(sink),
            Origin::Lane { .. } => None,
        };
        let Some(sink) = stored.or_else(|| self.plan.sink_of(&queued.message.topic)) else {
            return;
        };
        let name = self.plan.sinks[sink].name.clone();
        self.set_aside(sink, set(&queued.message, queued.key, name, aside));
        if queued.aside.is_none()
            && let Some(lane) = self.lanes.get_mut(&queued.message.lane)
        {
            lane.close(queued.line, queued.position());
            self.held.closed(self.plan.sink_of(&queued.message.topic), queued.key);
        }
    }
}

/// What becomes of the rest of a key.
enum Rest {
    Waits,
    GoesOn,
}

/// Is sent whatever follows.
fn alone(queued: Queued) -> Queued {
    Queued { single: true, ..queued }
}

/// Goes back to the front of its key. Without a key there is nothing that it could be behind.
fn keep(again: &mut BTreeMap<KeyHash, Vec<Queued>>, queued: Queued) {
    if let Some(key) = queued.key {
        again.entry(key).or_default().push(queued);
    }
}
