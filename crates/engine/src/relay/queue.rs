//! What waits for one sink, and what goes next: oldest first, of each key one group at a time, and of each
//! destination by itself.
//!
//! Keys are told apart by their hashes here: two keys with one hash wait for each other, which delays them
//! and nothing else. Where a message would count as done because of another, keys are compared.

use super::lanes::LineNumber;
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    time::Duration,
};
use tidegate_core::{
    Fence, Message, Position,
    outbox::{KeyHash, Lane},
    sink::Item,
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
    /// The destination within its sink.
    pub place: String,
    /// How many attempts have failed; `None` if it was never set aside.
    pub aside: Option<u32>,
    /// It is sent whatever follows.
    pub single: bool,
    pub since: Instant,
}

impl Queued {
    pub fn position(&self) -> Position {
        self.message.position
    }

    fn bytes(&self) -> usize {
        self.message.bytes()
    }

    /// As the sink gets it.
    pub fn item(&self) -> Item<'_> {
        Item { ordered: self.key.is_some(), ..self.message.item() }
    }

    /// Whether another is about the same thing: of the same topic, and of the same key and not only of one
    /// with the same hash.
    pub fn is_same(&self, other: &Self) -> bool {
        self.message.topic == other.message.topic
            && self.message.key.is_some()
            && self.message.key == other.message.key
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
    /// Whether a group has at most one message of each key.
    one_per_key: bool,
    keys: HashMap<KeyHash, KeyLine>,
    /// What can go now, by destination.
    ready: HashMap<String, ReadyLine>,
    /// Destinations with something ready, in turns.
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
type ReadyLine = BTreeMap<Position, Ready>;

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
    pub fn new(one_per_key: bool) -> Self {
        Self {
            one_per_key,
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
            let (place, position) = (queued.place.clone(), queued.position());
            return self.make_ready(place, position, Ready::Message(Box::new(queued)));
        };
        let line = self.keys.entry(key).or_default();
        line.waiting.push_back(queued);
        if !line.busy {
            line.busy = true;
            self.announce(key);
        }
    }

    /// Destinations with something that can go.
    pub fn places(&self) -> impl Iterator<Item = &String> {
        self.turns.iter()
    }

    /// The destination whose turn it is, of those that may get something: how many messages, if so.
    pub fn choose(&self, may: impl FnMut(&String) -> Option<usize>) -> Option<(String, usize)> {
        let mut may = may;
        self.turns.iter().find_map(|place| Some((place.clone(), may(place)?)))
    }

    /// The oldest that can go to a destination. Those for which a later one of their key stands because both
    /// coalesce take no room.
    pub fn take(
        &mut self,
        place: &str,
        fit: Fit,
        coalesces: impl Fn(&Queued) -> bool,
    ) -> Vec<Queued> {
        let mut group: Vec<Queued> = Vec::new();
        let Some(at) = self.turns.iter().position(|turn| turn == place) else { return group };
        let Some(place) = self.turns.remove(at) else { return group };
        let mut ready = self.ready.remove(&place).unwrap_or_default();
        // Keys of which the group has something: they are not ready any more, but more of them may go along.
        let mut begun = ReadyLine::new();
        let mut left = fit;
        while let Some((position, next, is_begun)) = pop_oldest(&mut ready, &mut begun) {
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
                        ready.insert(position, unfit);
                    }
                    break;
                }
            }
        }
        if !ready.is_empty() {
            self.ready.insert(place.clone(), ready);
            self.turns.push_back(place);
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
    ) -> Option<Option<Position>> {
        let line = self.keys.get_mut(&key)?;
        let first = line.waiting.front().filter(|first| left.takes(first, group.is_empty()))?;
        let place = first.place.clone();
        group.extend(line.waiting.pop_front());
        while let (Some(before), Some(next)) = (group.last(), line.waiting.front()) {
            if !(before.is_same(next) && coalesces(before) && coalesces(next)) {
                break;
            }
            if !left.swaps(before, next) {
                return Some(None);
            }
            group.extend(line.waiting.pop_front());
        }
        let goes_along = |next: &&Queued| !self.one_per_key && next.place == place;
        Some(line.waiting.front().filter(goes_along).map(Queued::position))
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

    /// Whether something of a key waits or is under way.
    pub fn has_key(&self, key: KeyHash) -> bool {
        self.keys.contains_key(&key)
    }

    /// How many keys and messages without a key can go to a destination.
    pub fn ready_at(&self, place: &str) -> usize {
        self.ready.get(place).map_or(0, BTreeMap::len)
    }

    /// Takes out what can go to a destination, but for the oldest that `keeps` says: of each key all that
    /// waits, in order. What follows a message that is under way stays.
    pub fn take_place(
        &mut self,
        place: &str,
        mut keeps: impl FnMut(&Queued) -> bool,
    ) -> Vec<Vec<Queued>> {
        let Some(ready) = self.ready.remove(place) else { return Vec::new() };
        let (mut stay, mut out) = (ReadyLine::new(), Vec::new());
        for (position, next) in ready {
            let kept = match &next {
                Ready::Message(queued) => keeps(queued),
                Ready::Key(key) => {
                    let first = self.keys.get(key).and_then(|line| line.waiting.front());
                    first.is_some_and(&mut keeps)
                }
            };
            match next {
                next if kept => drop(stay.insert(position, next)),
                Ready::Message(queued) => out.push(vec![*queued]),
                Ready::Key(key) => {
                    let line = self.keys.remove(&key);
                    out.extend(line.map(|line| line.waiting.into_iter().collect::<Vec<_>>()));
                }
            }
        }
        let gone = out.iter().flatten();
        self.messages -= gone.clone().count();
        self.bytes -= gone.map(Queued::bytes).sum::<usize>();
        if stay.is_empty() {
            self.turns.retain(|turn| turn != place);
        } else {
            self.ready.insert(place.to_owned(), stay);
        }
        out
    }

    /// Takes out what waits of some lanes, in the order of their positions: all, or only of keys that have
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
            for (position, next) in std::mem::take(ready) {
                match next {
                    Ready::Message(queued) if wanted(queued.message.lane) => out.push(*queued),
                    next => drop(ready.insert(position, next)),
                }
            }
        }
        self.messages -= out.len();
        self.bytes -= out.iter().map(Queued::bytes).sum::<usize>();
        self.drop_empty_keys();
        out.sort_by_key(Queued::position);
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
        let since = self.turns.iter().filter_map(|place| self.since(place));
        since.map(|since| now - since).max().unwrap_or_default()
    }

    /// Since when the oldest that can go to a destination has waited.
    pub fn since(&self, place: &str) -> Option<Instant> {
        match self.ready.get(place)?.first_key_value()?.1 {
            Ready::Message(queued) => Some(queued.since),
            Ready::Key(key) => Some(self.keys.get(key)?.waiting.front()?.since),
        }
    }

    /// The key can go.
    fn announce(&mut self, key: KeyHash) {
        let head = self.keys.get(&key).and_then(|line| line.waiting.front());
        let Some((place, position)) = head.map(|head| (head.place.clone(), head.position())) else {
            return;
        };
        self.make_ready(place, position, Ready::Key(key));
    }

    fn make_ready(&mut self, place: String, position: Position, ready: Ready) {
        let line = self.ready.entry(place.clone()).or_insert_with(|| {
            self.turns.push_back(place);
            ReadyLine::new()
        });
        line.insert(position, ready);
    }
}

/// The oldest of both, and whether it is of those that are begun.
fn pop_oldest(ready: &mut ReadyLine, begun: &mut ReadyLine) -> Option<(Position, Ready, bool)> {
    let first = |line: &ReadyLine| line.keys().next().copied();
    let is_begun = match (first(ready), first(begun)) {
        (Some(ready), Some(begun)) => begun < ready,
        (ready, _) => ready.is_none(),
    };
    let (position, next) = if is_begun { begun } else { ready }.pop_first()?;
    Some((position, next, is_begun))
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
mod tests;
