//! What waits for one sink, and what goes next: oldest first, of each key one group at a time.

use super::lanes::LineNumber;
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
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
        self.message.bytes()
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
    ready: HashMap<String, ReadyLine>,
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

/// Oldest first: what is done without a gap is settled, and a crash does not repeat it.
type ReadyLine = BTreeMap<MessageId, Ready>;

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
            let (topic, id) = (self.place(&queued.message.topic), queued.id());
            return self.make_ready(topic, id, Ready::Message(Box::new(queued)));
        };
        let line = self.keys.entry(key).or_default();
        line.waiting.push_back(queued);
        if !line.busy {
            line.busy = true;
            self.announce(key);
        }
    }

    /// The oldest that can go, of one topic if they do not mix. Those for which a later one of their key
    /// stands because both coalesce take no room.
    pub fn take(&mut self, fit: Fit, coalesces: impl Fn(&Queued) -> bool) -> Vec<Queued> {
        let mut group: Vec<Queued> = Vec::new();
        let Some(topic) = self.turns.pop_front() else { return group };
        let mut ready = self.ready.remove(&topic).unwrap_or_default();
        // Keys of which the group has something: they are not ready any more, but more of them may go along.
        let mut begun = ReadyLine::new();
        let mut left = fit;
        while let Some((id, next, is_begun)) = pop_oldest(&mut ready, &mut begun) {
            let taken = match next {
                Ready::Message(queued) => match left.takes(&queued, group.is_empty()) {
                    true => {
                        group.push(*queued);
                        Ok(None)
                    }
                    false => Err(Ready::Message(queued)),
                },
                Ready::Key(key) if self.is_spent(key) => Ok(None),
                Ready::Key(key) => self
                    .take_of_key(key, &mut left, &mut group, &coalesces)
                    .map(|rest| rest.map(|head| (head, Ready::Key(key))))
                    .ok_or(Ready::Key(key)),
            };
            match taken {
                Ok(more) => begun.extend(more),
                Err(unfit) => {
                    if !is_begun {
                        ready.insert(id, unfit);
                    }
                    break;
                }
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

    /// Takes the first of a key, with those that stand for it. Returns which one may go along next, or `None`
    /// if there is no room for the first.
    fn take_of_key(
        &mut self,
        key: KeyHash,
        left: &mut Fit,
        group: &mut Vec<Queued>,
        coalesces: &impl Fn(&Queued) -> bool,
    ) -> Option<Option<MessageId>> {
        let line = self.keys.get_mut(&key)?;
        let first = line.waiting.front().filter(|first| left.takes(first, group.is_empty()))?;
        let topic = first.message.topic.clone();
        group.extend(line.waiting.pop_front());
        while let (Some(before), Some(next)) = (group.last(), line.waiting.front()) {
            let stands =
                before.message.topic == next.message.topic && coalesces(before) && coalesces(next);
            if !stands {
                break;
            }
            if !left.swaps(before, next) {
                return Some(None);
            }
            group.extend(line.waiting.pop_front());
        }
        let goes_along = |next: &&Queued| self.mixes || next.message.topic == topic;
        Some(line.waiting.front().filter(goes_along).map(Queued::id))
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
                self.announce(key);
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
            self.ready.values().flat_map(BTreeMap::values).filter_map(Ready::key).collect();
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
            for (id, next) in std::mem::take(ready) {
                match next {
                    Ready::Message(queued) if wanted(queued.message.lane) => out.push(*queued),
                    next => drop(ready.insert(id, next)),
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
            ready.retain(|_, ready| match ready {
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
        let firsts = self.turns.iter().filter_map(|topic| self.ready.get(topic)?.first_key_value());
        let since = firsts.filter_map(|(_, ready)| match ready {
            Ready::Message(queued) => Some(queued.since),
            Ready::Key(key) => Some(self.keys.get(key)?.waiting.front()?.since),
        });
        since.map(|since| now - since).max().unwrap_or_default()
    }

    fn place(&self, topic: &str) -> String {
        if self.mixes { String::new() } else { topic.to_owned() }
    }

    /// The key can go.
    fn announce(&mut self, key: KeyHash) {
        let head = self.keys.get(&key).and_then(|line| line.waiting.front());
        let Some((topic, id)) = head.map(|head| (self.place(&head.message.topic), head.id()))
        else {
            return;
        };
        self.make_ready(topic, id, Ready::Key(key));
    }

    fn make_ready(&mut self, topic: String, id: MessageId, ready: Ready) {
        let line = self.ready.entry(topic.clone()).or_insert_with(|| {
            self.turns.push_back(topic);
            ReadyLine::new()
        });
        line.insert(id, ready);
    }
}

/// The oldest of both, and whether it is of those that are begun.
fn pop_oldest(ready: &mut ReadyLine, begun: &mut ReadyLine) -> Option<(MessageId, Ready, bool)> {
    let first = |line: &ReadyLine| line.keys().next().copied();
    let is_begun = match (first(ready), first(begun)) {
        (Some(ready), Some(begun)) => begun < ready,
        (ready, _) => ready.is_none(),
    };
    let (id, next) = if is_begun { begun } else { ready }.pop_first()?;
    Some((id, next, is_begun))
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Headers, outbox::Origin};

    fn queued(id: i64, key: Option<i64>, topic: &str) -> Queued {
        let message = Message {
            id: MessageId(id),
            name: id.to_string(),
            lane: Lane(0),
            topic: topic.to_owned(),
            key: key.map(|key| key.to_string()),
            headers: Headers::new(),
            payload: vec![0; 10],
            published_ms: 0,
            origin: Origin::Lane { due_in: None },
        };
        let (line, fence, since) = (0, Fence(1), Instant::now());
        Queued { message, line, fence, key: key.map(KeyHash), aside: None, single: false, since }
    }

    /// Ten messages, of two keys in turns, and every fifth of none.
    fn queue(mixes: bool) -> Queue {
        let mut queue = Queue::new(mixes);
        for id in 1..=10 {
            let key = (id % 5 != 0).then_some(id % 2);
            queue.push(queued(id, key, if id % 3 == 0 { "third" } else { "t" }));
        }
        queue
    }

    fn ids(group: &[Queued]) -> Vec<i64> {
        group.iter().map(|queued| queued.id().0).collect()
    }

    fn take(queue: &mut Queue, messages: usize) -> Vec<Queued> {
        queue.take(Fit { messages, bytes: usize::MAX }, |_| false)
    }

    fn finish(queue: &mut Queue, group: &[Queued]) {
        let keys: HashSet<KeyHash> = group.iter().filter_map(|queued| queued.key).collect();
        queue.finished(group.len(), keys);
    }

    /// What a crash repeats is what was delivered and is not settled: a key that goes ahead of others would leave
    /// gaps.
    #[tokio::test]
    async fn the_oldest_goes_first_however_many_go_at_once() {
        for messages in 1..=11 {
            let (mut queue, mut order) = (queue(true), Vec::new());
            while queue.has_ready() {
                let group = take(&mut queue, messages);
                order.extend(ids(&group));
                finish(&mut queue, &group);
            }
            assert_eq!(order, (1..=10).collect::<Vec<i64>>(), "{messages} at once");
            assert_eq!(queue.load(), (0, 0));
        }
    }

    #[tokio::test]
    async fn a_key_has_one_group_under_way() {
        let mut queue = queue(true);
        let first = take(&mut queue, 3);
        assert_eq!(ids(&first), [1, 2, 3]);
        assert_eq!(ids(&take(&mut queue, 10)), [5, 10], "both keys are under way");
        assert!(!queue.has_ready());
        finish(&mut queue, &first);
        assert_eq!(ids(&take(&mut queue, 10)), [4, 6, 7, 8, 9]);
    }

    #[tokio::test]
    async fn topics_that_do_not_mix_go_apart_and_in_the_order_of_keys() {
        let mut queue = queue(false);
        let first = take(&mut queue, 10);
        assert_eq!(ids(&first), [1, 2, 4, 5, 10], "3 and 6 are of another topic");
        finish(&mut queue, &first);
        let second = take(&mut queue, 10);
        assert_eq!(ids(&second), [3, 6]);
        finish(&mut queue, &second);
        assert_eq!(ids(&take(&mut queue, 10)), [7, 8]);
    }

    #[tokio::test]
    async fn what_coalesces_goes_along_and_takes_no_room() {
        let mut queue = queue(true);
        let fit = Fit { messages: 2, bytes: usize::MAX };
        let group = queue.take(fit, |queued| queued.message.topic == "t");
        assert_eq!(ids(&group), [1, 2, 4], "4 stands for 2");
    }
}
