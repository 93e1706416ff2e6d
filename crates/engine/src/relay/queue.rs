//! What waits for one sink, and what goes next: oldest first, of each key one group at a time.

use super::lanes::LineNumber;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};
use tidegate_core::{
    Fence, Message, MessageId,
    outbox::{KeyHash, Lane},
};
use tokio::time::Instant;

/// A message on its way.
pub(super) struct Queued {
    pub message: Message,
    /// How it was read.
    pub line: LineNumber,
    /// The lease under which it was read.
    pub fence: Fence,
    pub key: Option<KeyHash>,
    /// How many attempts have failed; `None` if it was never set aside.
    pub aside: Option<u32>,
    /// It is sent whatever follows.
    pub single: bool,
    pub since: Instant,
}

impl Queued {
    pub fn id(&self) -> MessageId {
        self.message.id
    }

    fn bytes(&self) -> usize {
        self.message.payload.len()
    }
}

/// What a group may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub messages: usize,
    pub bytes: usize,
}

/// What waits for one sink.
pub(super) struct Queue {
    /// Whether a group may have messages of several topics.
    mixes: bool,
    keys: HashMap<KeyHash, KeyLine>,
    /// What can go now, by topic.
    ready: HashMap<String, VecDeque<Ready>>,
    /// Topics with something ready, in turns.
    turns: VecDeque<String>,
    messages: usize,
    bytes: usize,
    /// What was taken and has no verdict yet.
    under_way: usize,
}

#[derive(Default)]
struct KeyLine {
    waiting: VecDeque<Queued>,
    /// One is under way, or among what is ready.
    busy: bool,
}

enum Ready {
    Message(Box<Queued>),
    Key(KeyHash),
}

impl Ready {
    fn key(&self) -> Option<KeyHash> {
        match self {
            Ready::Message(_) => None,
            Ready::Key(key) => Some(*key),
        }
    }
}

impl Queue {
    pub fn new(mixes: bool) -> Self {
        Self {
            mixes,
            keys: HashMap::new(),
            ready: HashMap::new(),
            turns: VecDeque::new(),
            messages: 0,
            bytes: 0,
            under_way: 0,
        }
    }

    /// How many messages wait or are under way, and the bytes of those that wait.
    pub fn load(&self) -> (usize, usize) {
        (self.messages + self.under_way, self.bytes)
    }

    /// Whether something can go now.
    pub fn has_ready(&self) -> bool {
        !self.turns.is_empty()
    }

    pub fn push(&mut self, queued: Queued) {
        self.messages += 1;
        self.bytes += queued.bytes();
        let Some(key) = queued.key else {
            let topic = self.place(&queued.message.topic);
            return self.make_ready(topic, Ready::Message(Box::new(queued)), false);
        };
        let line = self.keys.entry(key).or_default();
        line.waiting.push_back(queued);
        if !line.busy {
            line.busy = true;
            self.announce(key, false);
        }
    }

    /// The oldest that can go, of one topic if they do not mix. Those for which a later one of their key
    /// stands because both coalesce take no room.
    pub fn take(&mut self, fit: Fit, coalesces: impl Fn(&Queued) -> bool) -> Vec<Queued> {
        let mut group: Vec<Queued> = Vec::new();
        let Some(topic) = self.turns.pop_front() else { return group };
        let mut ready = self.ready.remove(&topic).unwrap_or_default();
        let mut left = fit;
        while let Some(next) = ready.pop_front() {
            let taken = match next {
                Ready::Message(queued) if left.takes(&queued, group.is_empty()) => {
                    group.push(*queued);
                    true
                }
                Ready::Message(queued) => {
                    ready.push_front(Ready::Message(queued));
                    false
                }
                Ready::Key(key) if self.is_spent(key) => true,
                Ready::Key(key) => {
                    let before = group.len();
                    self.take_key(key, &mut left, &mut group, &coalesces);
                    if group.len() == before {
                        ready.push_front(Ready::Key(key));
                    }
                    group.len() > before
                }
            };
            if !taken {
                break;
            }
        }
        if !ready.is_empty() {
            self.ready.insert(topic.clone(), ready);
            self.turns.push_back(topic);
        }
        self.messages -= group.len();
        self.bytes -= group.iter().map(Queued::bytes).sum::<usize>();
        self.under_way += group.len();
        group
    }

    fn take_key(
        &mut self,
        key: KeyHash,
        left: &mut Fit,
        group: &mut Vec<Queued>,
        coalesces: &impl Fn(&Queued) -> bool,
    ) {
        let Some(line) = self.keys.get_mut(&key) else { return };
        let topic = line.waiting.front().map(|queued| queued.message.topic.clone());
        let others = group.len();
        while let Some(next) = line.waiting.front() {
            if !self.mixes && Some(&next.message.topic) != topic.as_ref() {
                return;
            }
            let before = group[others..].last().filter(|before| {
                before.message.topic == next.message.topic && coalesces(before) && coalesces(next)
            });
            let takes = match before {
                Some(before) => left.swaps(before, next),
                None => left.takes(next, group.is_empty()),
            };
            if !takes {
                return;
            }
            group.extend(line.waiting.pop_front());
        }
    }

    /// Whether nothing is left of a key; then it is forgotten.
    fn is_spent(&mut self, key: KeyHash) -> bool {
        let spent = self.keys.get(&key).is_none_or(|line| line.waiting.is_empty());
        if spent {
            self.keys.remove(&key);
        }
        spent
    }

    /// Those that were taken have their verdicts: their keys may go on.
    pub fn finished(&mut self, messages: usize, keys: impl IntoIterator<Item = KeyHash>) {
        self.under_way -= messages;
        for key in keys {
            let Some(line) = self.keys.get_mut(&key) else { continue };
            if line.waiting.is_empty() {
                self.keys.remove(&key);
            } else {
                self.announce(key, true);
            }
        }
    }

    /// Puts back, in order, what was taken and must go before all that waits of its key. Comes before
    /// [`Queue::finished`].
    pub fn put_back(&mut self, key: KeyHash, queued: impl DoubleEndedIterator<Item = Queued>) {
        let line = self.keys.entry(key).or_default();
        for queued in queued.rev() {
            self.messages += 1;
            self.bytes += queued.bytes();
            line.waiting.push_front(queued);
        }
    }

    /// Takes out all that waits of a key.
    pub fn take_out(&mut self, key: KeyHash) -> Vec<Queued> {
        let Some(line) = self.keys.get_mut(&key) else { return Vec::new() };
        let out: Vec<Queued> = line.waiting.drain(..).collect();
        self.messages -= out.len();
        self.bytes -= out.iter().map(Queued::bytes).sum::<usize>();
        out
    }

    /// Takes out what waits of some lanes, in the order of their ids: all, or only of keys that have
    /// nothing under way.
    pub fn take_lanes(&mut self, wanted: impl Fn(Lane) -> bool, idle: bool) -> Vec<Queued> {
        let mut out: Vec<Queued> = Vec::new();
        let ready: HashSet<KeyHash> =
            self.ready.values().flatten().filter_map(Ready::key).collect();
        for (_, line) in self.keys.iter_mut().filter(|(key, _)| !idle || ready.contains(key)) {
            // A key has one lane, but two keys may have the same hash.
            if line.waiting.iter().any(|queued| wanted(queued.message.lane)) {
                let waiting = std::mem::take(&mut line.waiting);
                let (gone, stay): (VecDeque<_>, _) =
                    waiting.into_iter().partition(|queued| wanted(queued.message.lane));
                out.extend(gone);
                line.waiting = stay;
            }
        }
        for ready in self.ready.values_mut() {
            for next in std::mem::take(ready) {
                match next {
                    Ready::Message(queued) if wanted(queued.message.lane) => out.push(*queued),
                    next => ready.push_back(next),
                }
            }
        }
        self.messages -= out.len();
        self.bytes -= out.iter().map(Queued::bytes).sum::<usize>();
        self.drop_empty_keys();
        out.sort_by_key(Queued::id);
        out
    }

    /// A key that is ready and has nothing left must not stand in the way of others.
    fn drop_empty_keys(&mut self) {
        let keys = &mut self.keys;
        self.ready.retain(|_, ready| {
            ready.retain(|ready| match ready {
                Ready::Message(_) => true,
                Ready::Key(key) => {
                    let empty = keys.get(key).is_none_or(|line| line.waiting.is_empty());
                    if empty {
                        keys.remove(key);
                    }
                    !empty
                }
            });
            !ready.is_empty()
        });
        let ready = &self.ready;
        self.turns.retain(|topic| ready.contains_key(topic));
    }

    /// How long the oldest that waits has waited.
    pub fn oldest(&self, now: Instant) -> Duration {
        let firsts = self.turns.iter().filter_map(|topic| self.ready.get(topic)?.front());
        let since = firsts.filter_map(|ready| match ready {
            Ready::Message(queued) => Some(queued.since),
            Ready::Key(key) => Some(self.keys.get(key)?.waiting.front()?.since),
        });
        since.map(|since| now - since).max().unwrap_or_default()
    }

    fn place(&self, topic: &str) -> String {
        if self.mixes { String::new() } else { topic.to_owned() }
    }

    /// The key can go; `first` if it has waited for its turn already.
    fn announce(&mut self, key: KeyHash, first: bool) {
        let head = self.keys.get(&key).and_then(|line| line.waiting.front());
        let Some(topic) = head.map(|head| self.place(&head.message.topic)) else { return };
        self.make_ready(topic, Ready::Key(key), first);
    }

    fn make_ready(&mut self, topic: String, ready: Ready, first: bool) {
        let line = self.ready.entry(topic.clone()).or_insert_with(|| {
            self.turns.push_back(topic);
            VecDeque::new()
        });
        match first {
            true => line.push_front(ready),
            false => line.push_back(ready),
        }
    }
}

impl Fit {
    /// Whether one fits in the place of another.
    fn swaps(&mut self, before: &Queued, next: &Queued) -> bool {
        let bytes = self.bytes + before.bytes();
        let fits = next.bytes() <= bytes;
        if fits {
            self.bytes = bytes - next.bytes();
        }
        fits
    }

    /// Whether another one fits; the first always does.
    fn takes(&mut self, queued: &Queued, first: bool) -> bool {
        if self.messages == 0 || !first && queued.bytes() > self.bytes {
            return false;
        }
        self.messages -= 1;
        self.bytes = self.bytes.saturating_sub(queued.bytes());
        true
    }
}
