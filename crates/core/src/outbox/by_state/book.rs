//! What was set aside, in memory: for stores that cannot find the first of every key by themselves.
//!
//! A relay that takes lanes over reads what was set aside there once, and then knows what is due without asking. Of
//! every key that waits, the first is due and no other is. What is dead and lets its key go on is not here.

use crate::{
    limits::MAX_BEHIND,
    outbox::{
        ClaimRequest, HeldKey, KeyHash, Lane, OnDead, Position, Route, SetAside, StuckState,
        Waiting, by_state::Row,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};

/// One message that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsideRow {
    /// How the store finds it.
    pub row: Row,
    /// Its lane.
    pub lane: Lane,
    /// Its topic.
    pub topic: String,
    /// What its key is known by.
    pub key: Option<KeyHash>,
    /// The sink that it is for.
    pub sink: String,
    /// What it waits for.
    pub state: StuckState,
    /// How many attempts have failed.
    pub attempts: u32,
    /// Why the last one did.
    pub reason: String,
    /// What its death means for its key.
    pub then: OnDead,
    /// When it is due, by whatever clock the store goes by.
    pub due: Duration,
}

impl AsideRow {
    /// Whether what follows with its key must wait.
    pub fn holds(&self) -> bool {
        match self.state {
            StuckState::Retry | StuckState::Behind => true,
            StuckState::Dead => self.then != OnDead::Skip,
            StuckState::Later | StuckState::Unrouted => false,
        }
    }

    /// Whether it is dead, and nothing waits for it.
    pub fn is_over(&self) -> bool {
        self.state == StuckState::Dead && self.then == OnDead::Skip
    }

    /// The key that it is of, if it has one.
    pub fn held_key(&self) -> Option<HeldKey> {
        Some(HeldKey { lane: self.lane, sink: self.sink.clone(), key: self.key? })
    }

    fn is_timed(&self) -> bool {
        matches!(self.state, StuckState::Retry | StuckState::Later)
    }

    /// What a settlement says about it now. A message without a key has nothing that it could wait behind.
    pub fn set(&mut self, set: &SetAside, now: Duration) {
        let Waiting { state, attempts, reason, then, delay } = set.aside.waiting();
        self.attempts = self.attempts.max(attempts);
        if !reason.is_empty() {
            reason.clone_into(&mut self.reason);
        }
        set.sink.clone_into(&mut self.sink);
        (self.state, self.then, self.due) = (state, then, now + delay);
        if self.state == StuckState::Behind && self.key.is_none() {
            (self.state, self.due) = (StuckState::Retry, now);
        }
    }

    /// A message that was never set aside before.
    pub fn new(row: Row, set: &SetAside, now: Duration) -> Self {
        let mut new = Self {
            row,
            lane: set.lane,
            topic: set.topic.clone(),
            key: set.key,
            sink: String::new(),
            state: StuckState::Behind,
            attempts: 0,
            reason: String::new(),
            then: OnDead::Skip,
            due: now,
        };
        new.set(set, now);
        new
    }
}

/// What waits in the lanes of one relay.
#[derive(Clone, Debug, Default)]
pub struct AsideBook {
    rows: BTreeMap<Position, AsideRow>,
    /// By key, what holds it.
    lines: BTreeMap<HeldKey, Line>,
    /// What is tried again at a time, or waits for its time.
    timed: BTreeSet<(Duration, Position)>,
}

#[derive(Clone, Debug, Default)]
struct Line {
    all: BTreeSet<Position>,
    retrying: BTreeSet<Position>,
}

impl AsideBook {
    /// How many messages are in it.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A message that was set aside.
    pub fn get(&self, position: Position) -> Option<&AsideRow> {
        self.rows.get(&position)
    }

    /// Adds a message, or replaces what was known of it. One that is over is removed.
    pub fn insert(&mut self, position: Position, row: AsideRow) {
        self.remove(position);
        if row.is_over() {
            return;
        }
        if row.is_timed() {
            self.timed.insert((row.due, position));
        }
        if let Some(key) = row.held_key().filter(|_| row.holds()) {
            let line = self.lines.entry(key).or_default();
            line.all.insert(position);
            if row.state == StuckState::Retry {
                line.retrying.insert(position);
            }
        }
        self.rows.insert(position, row);
    }

    /// Removes a message.
    pub fn remove(&mut self, position: Position) -> Option<AsideRow> {
        let row = self.rows.remove(&position)?;
        self.timed.remove(&(row.due, position));
        if let Some(key) = row.held_key()
            && let Some(line) = self.lines.get_mut(&key)
        {
            line.all.remove(&position);
            line.retrying.remove(&position);
            if line.all.is_empty() {
                self.lines.remove(&key);
            }
        }
        Some(row)
    }

    /// Forgets all of some lanes.
    pub fn forget(&mut self, lanes: impl Fn(Lane) -> bool) {
        let of_lanes: Vec<Position> =
            self.rows.iter().filter(|(_, row)| lanes(row.lane)).map(|(it, _)| *it).collect();
        of_lanes.into_iter().for_each(|position| drop(self.remove(position)));
    }

    /// Brings a lane in order that was just leased: what goes to another sink now waits there in its key's line, and
    /// what nobody takes any more has no route. Returns the keys that are held.
    pub fn gain(&mut self, lane: Lane, routes: &[Route], now: Duration) -> Vec<HeldKey> {
        let of_lane = self.rows.iter().filter(|(_, row)| row.lane == lane);
        let moved: Vec<(Position, AsideRow)> = of_lane
            .filter_map(|(position, row)| Some((*position, rerouted(row, routes, now)?)))
            .collect();
        moved.into_iter().for_each(|(position, row)| self.insert(position, row));
        let held: Vec<HeldKey> =
            self.lines.keys().filter(|key| key.lane == lane).cloned().collect();
        for key in &held {
            self.tend(key, now);
        }
        held
    }

    /// Messages were settled. Returns the keys among theirs that nothing holds any more.
    pub fn settle(
        &mut self,
        set: impl IntoIterator<Item = (Position, AsideRow)>,
        done: impl IntoIterator<Item = Position>,
        now: Duration,
    ) -> Vec<HeldKey> {
        let mut touched = BTreeSet::new();
        for position in done {
            touched.extend(self.remove(position).and_then(|row| row.held_key()));
        }
        for (position, row) in set {
            touched.extend(self.get(position).and_then(AsideRow::held_key));
            touched.extend(row.held_key());
            self.insert(position, row);
        }
        self.free(touched, now)
    }

    /// Those of some keys that nothing holds. Of the others, the first that waits is due.
    pub fn free(&mut self, keys: impl IntoIterator<Item = HeldKey>, now: Duration) -> Vec<HeldKey> {
        keys.into_iter().filter(|key| self.tend(key, now)).collect()
    }

    /// Makes the first that waits of a key due, unless one before it holds the key; all others wait. Returns whether
    /// nothing that holds it is left.
    fn tend(&mut self, key: &HeldKey, now: Duration) -> bool {
        let Some(line) = self.lines.get(key) else { return true };
        let Some(first) = line.all.first().copied() else { return true };
        let others: Vec<Position> =
            line.retrying.iter().filter(|position| **position != first).copied().collect();
        for position in others {
            self.change(position, |row| row.state = StuckState::Behind);
        }
        if self.get(first).is_some_and(|row| row.state == StuckState::Behind) {
            self.change(first, |row| (row.state, row.due) = (StuckState::Retry, now));
        }
        false
    }

    fn change(&mut self, position: Position, change: impl FnOnce(&mut AsideRow)) {
        if let Some(mut row) = self.remove(position) {
            change(&mut row);
            self.insert(position, row);
        }
    }

    /// When the next message is due that a relay wants.
    pub fn next_due(&self, request: &ClaimRequest, now: Duration) -> Option<Duration> {
        let wanted = Wanted::of(request);
        let next = self.timed.iter().find(|(_, position)| self.is_wanted(&wanted, *position));
        next.map(|(due, _)| due.saturating_sub(now))
    }

    /// Messages that are due, each with some of those that wait behind it, in the order of their positions.
    pub fn due(&self, request: &ClaimRequest, now: Duration) -> Vec<Position> {
        let wanted = Wanted::of(request);
        let due =
            self.timed.iter().take_while(|(due, _)| *due <= now).map(|(_, position)| *position);
        let heads: Vec<Position> = due
            .filter(|position| self.is_wanted(&wanted, *position))
            .take(request.most_due)
            .collect();
        let mut chosen: BTreeSet<Position> = heads.iter().copied().collect();
        for head in heads {
            let Some(row) = self.get(head).filter(|row| row.state == StuckState::Retry) else {
                continue;
            };
            let Some(line) = row.held_key().and_then(|key| self.lines.get(&key)) else { continue };
            let behind = line.all.range(head..).skip(1).take(MAX_BEHIND);
            chosen.extend(behind.copied().take_while(|position| {
                let waits = self.get(*position).is_some_and(|row| row.state == StuckState::Behind);
                waits && !wanted.under_way.contains(position)
            }));
        }
        chosen.into_iter().collect()
    }

    fn is_wanted(&self, wanted: &Wanted<'_>, position: Position) -> bool {
        self.get(position).is_some_and(|row| {
            wanted.lanes.contains(&row.lane)
                && !wanted.closed.contains(row.sink.as_str())
                && !wanted.under_way.contains(&position)
        })
    }
}

/// What a relay asks for, to be looked up.
struct Wanted<'a> {
    lanes: HashSet<Lane>,
    closed: HashSet<&'a str>,
    under_way: HashSet<Position>,
}

impl<'a> Wanted<'a> {
    fn of(request: &'a ClaimRequest) -> Self {
        Self {
            lanes: request.lanes.iter().copied().collect(),
            closed: request.closed.iter().map(String::as_str).collect(),
            under_way: request.under_way.iter().copied().collect(),
        }
    }
}

/// A message whose topic goes elsewhere now; `None` if it stays where it is.
fn rerouted(row: &AsideRow, routes: &[Route], now: Duration) -> Option<AsideRow> {
    let sink = Route::find(routes, &row.topic).map_or("", |route| &route.sink);
    if row.sink == sink {
        return None;
    }
    let mut row = AsideRow { sink: sink.to_owned(), ..row.clone() };
    match row.state {
        StuckState::Dead => {}
        _ if sink.is_empty() => row.state = StuckState::Unrouted,
        StuckState::Later => {}
        _ => {
            row.due = now;
            row.state = if row.key.is_some() { StuckState::Behind } else { StuckState::Retry };
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests;
