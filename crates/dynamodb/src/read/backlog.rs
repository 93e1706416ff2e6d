//! More is outstanding than one page holds: which shards to read next. Pure.
//!
//! A topic that is known is read by query, all of its shards together, so that a key stays in order also if two
//! shards hold it. When it was read to its end, it is asked again after a pause that grows. So a topic that is never
//! read to its end delays no other.
//!
//! Topics that are not known are found by a *pass* over the index of all topics, a page at a time beside the queries.
//! It also finds messages that came in behind the place to which a shard was read. Passes follow each other for as
//! long as more than one page is outstanding, and slowly when they find nothing: each page costs read units.

use super::{
    Seen,
    merge::{ShardPage, place_of, time_of},
};
use crate::{item::Item, shard, ticks::Ticks};
use std::{
    collections::BTreeMap,
    ops::Bound,
    time::{Duration, Instant},
};

/// Queries of one look, unless a single topic has more shards.
const QUERIES_AT_ONCE: usize = 8;

/// The pause before a topic that was read to its end is asked again: it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Between the pages of the first pass if they show nothing new, and between those of later passes.
const FIRST_PASS: Duration = Duration::from_millis(100);
const LATER_PASS: Duration = Duration::from_millis(500);

/// A shard is asked for so many messages at least.
const LEAST: usize = 16;

/// More topics are not remembered once they were read to their ends. A pass finds them again.
const MOST_TOPICS: usize = 10_000;

/// The topics of which something is outstanding, and how far each was read.
#[derive(Debug)]
pub(super) struct Backlog {
    topics: BTreeMap<String, Topic>,
    /// The number of shards that each topic has.
    shards: u32,
    /// Whether a shard with a negative number was seen: then all topics may have some.
    has_negative: bool,
    /// The topic that was read last: the next look begins behind it.
    last: String,
    pass: Pass,
    /// How often it was begun anew. Answers to what was asked before that are of no use.
    era: u64,
}

#[derive(Debug)]
struct Topic {
    shards: BTreeMap<String, Shard>,
    /// When it is asked again if it was read to its end.
    next: Instant,
    pause: Duration,
}

/// How far a shard was read.
#[derive(Clone, Debug, Default)]
struct Shard {
    /// The last message that was read; `None`: from the beginning.
    from: Option<Item>,
    /// Whether there was nothing behind it.
    is_over: bool,
    /// How many messages were of use when it was read last.
    used: usize,
    /// A message was left where it is until then: the shard is read from its beginning again.
    again: Option<Ticks>,
}

/// A pass over the index of all topics.
#[derive(Debug)]
struct Pass {
    /// Where it goes on.
    from: Option<Item>,
    pages: u32,
    is_first: bool,
    /// Whether it has found something new.
    found: bool,
    /// When the next page may be read.
    next: Instant,
    /// The last page that was read ended a pass that has found nothing new.
    has_ended: bool,
    /// When the first of the messages may be read that it has left where they are.
    left: Option<Instant>,
    /// The same of the pass before it.
    left_before: Option<Instant>,
}

/// One query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    pub topic: String,
    pub shard: String,
    pub from: Option<Item>,
    pub limit: u32,
    era: u64,
}

/// What one look reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub queries: Vec<Query>,
    /// Where the pass goes on, if it does now.
    pub page: Option<Option<Item>>,
}

impl Backlog {
    pub fn new(shards: u32, has_negative: bool, now: Instant) -> Self {
        let pass = Pass::first(now);
        Self { topics: BTreeMap::new(), shards, has_negative, last: String::new(), pass, era: 0 }
    }

    /// Lanes were gained: their messages may be anywhere behind the places to which shards were read.
    pub fn begin_anew(&mut self, now: Instant) {
        for topic in self.topics.values_mut() {
            topic.shards.values_mut().for_each(|shard| *shard = Shard::default());
            topic.next = now;
        }
        self.pass = Pass::first(now);
        self.era += 1;
    }

    /// A message that is new to this relay. Returns whether its shard would not have been read soon.
    pub fn note(&mut self, seen: &Seen, now: Instant) -> bool {
        let (name, topic) = (&seen.found.shard, &seen.found.message.topic);
        if shard::is_negative(name) {
            self.find_negative();
        }
        let mut is_new = !self.topics.contains_key(topic);
        let shards = self.shards;
        let known = self.topics.entry(topic.clone()).or_insert_with(|| {
            let mut new = Topic { shards: BTreeMap::new(), next: now, pause: FIRST_PAUSE };
            new.add((0..shards).map(|n| shard::name(topic, n)));
            // Whether these have anything is known after one look.
            new.add(negative(topic, shards));
            new
        });
        let shard = known.shards.entry(name.clone()).or_insert_with(|| {
            is_new = true;
            Shard::default()
        });
        let is_behind =
            shard.from.as_ref().and_then(time_of).is_some_and(|at| seen.outstanding <= at);
        if is_behind {
            *shard = Shard::default();
        }
        let was_over = std::mem::replace(&mut shard.is_over, false);
        if is_behind || was_over || is_new {
            known.next = now;
        }
        is_behind || was_over || is_new
    }

    /// A shard with a negative number has something: others may have, too.
    fn find_negative(&mut self) {
        if !std::mem::replace(&mut self.has_negative, true) {
            let topics = self.topics.iter_mut();
            topics.for_each(|(topic, known)| known.add(negative(topic, self.shards)));
        }
    }

    pub fn has_negative(&self) -> bool {
        self.has_negative
    }

    /// What to read now: the topics that somebody wants, one after the other, up to so many messages.
    pub fn plan(
        &mut self,
        wants: impl Fn(&str) -> bool,
        (most, page): (usize, u32),
        (ticks, now): (Ticks, Instant),
    ) -> Plan {
        for topic in self.topics.values_mut() {
            for shard in
                topic.shards.values_mut().filter(|it| it.again.is_some_and(|at| at <= ticks))
            {
                *shard = Shard::default();
                topic.next = now;
            }
        }
        let is_due = |(name, topic): &(&String, &Topic)| topic.is_due(now) && wants(name);
        let behind = (Bound::Excluded(self.last.as_str()), Bound::Unbounded);
        let behind = self.topics.range::<str, _>(behind);
        let before =
            self.topics.range::<str, _>((Bound::Unbounded, Bound::Included(self.last.as_str())));
        let mut chosen: Vec<(&String, &Topic)> = Vec::new();
        let mut count = 0;
        for (name, topic) in behind.chain(before).filter(is_due) {
            count += topic.shards.len();
            if count > QUERIES_AT_ONCE && !chosen.is_empty() {
                break;
            }
            chosen.push((name, topic));
        }
        let weight = |shard: &Shard| shard.used.max(LEAST);
        let all: usize =
            chosen.iter().flat_map(|(_, topic)| topic.shards.values()).map(weight).sum();
        let query = |topic: &String, (name, shard): (&String, &Shard)| Query {
            topic: topic.clone(),
            shard: name.clone(),
            from: shard.from.clone(),
            limit: ((most * weight(shard) / all.max(1)).max(LEAST) as u32).min(page),
            era: self.era,
        };
        let queries = chosen
            .iter()
            .flat_map(|(name, topic)| topic.shards.iter().map(|shard| query(name, shard)))
            .collect();
        let last = chosen.last().map(|(name, _)| (*name).clone());
        self.last = last.unwrap_or_else(|| std::mem::take(&mut self.last));
        let page = (self.pass.next <= now).then(|| self.pass.from.clone());
        Plan { queries, page }
    }

    /// The pass comes by messages that must wait, the first of them for so long.
    pub fn leave(&mut self, wait: Duration, now: Instant) {
        self.pass.left = self.pass.left.into_iter().chain([now + wait]).min();
    }

    /// A page of the pass was read. These of it are new to this relay, and old enough. Returns whether everything
    /// that is outstanding fits into one page.
    pub fn passed<'a>(
        &mut self,
        new: impl Iterator<Item = &'a Seen>,
        next: Option<Item>,
        now: Instant,
    ) -> bool {
        let mut found = false;
        for seen in new {
            found |= self.note(seen, now);
        }
        let pass = &mut self.pass;
        pass.found |= found;
        pass.pages += 1;
        let pause = match (found, pass.is_first) {
            (true, _) => Duration::ZERO,
            (false, true) => FIRST_PASS,
            (false, false) => LATER_PASS,
        };
        (pass.next, pass.has_ended) = (now + pause, false);
        if next.is_some() {
            pass.from = next;
            return false;
        }
        let is_all = pass.pages == 1;
        let (has_ended, left_before) = (!pass.found, pass.left);
        *pass = Pass { is_first: false, has_ended, left_before, ..Pass::first(now + pause) };
        is_all
    }

    /// A page of a shard was read. `used` of its messages are known now, taken or not wanted; `left` says whether
    /// others are left. One of them may be due at a later time, `again`.
    pub fn read(&mut self, page: &ShardPage, used: usize, again: Option<Ticks>) {
        let query = &page.query;
        if shard::is_negative(&query.shard) && !page.rows.is_empty() {
            self.find_negative();
        }
        let Some(topic) = self.topics.get_mut(&query.topic) else { return };
        let Some(shard) = topic.shards.get_mut(&query.shard) else { return };
        // It was begun anew meanwhile.
        if self.era != query.era || shard.from != query.from {
            return;
        }
        shard.used = used;
        shard.again = shard.again.into_iter().chain(again).min();
        let last = used.checked_sub(1).and_then(|last| page.rows.get(last));
        let last = last.and_then(|row| place_of(&query.shard, row));
        let is_left = page.is_cut || used < page.rows.len();
        match &page.next {
            Some(next) if !is_left => shard.from = Some(next.clone()),
            _ => shard.from = last.or_else(|| shard.from.take()),
        }
        shard.is_over = !is_left && page.next.is_none();
        let is_idle = shard.is_over && shard.from.is_none();
        if is_idle && shard::is_negative(&query.shard) && !self.has_negative {
            topic.shards.remove(&query.shard);
        }
    }

    /// Topics were read in this look.
    pub fn rest(&mut self, queries: &[ShardPage], now: Instant) {
        for page in queries {
            let Some(topic) = self.topics.get_mut(&page.query.topic) else { continue };
            if !topic.is_open() && topic.next <= now {
                let found = topic.shards.values().any(|shard| shard.used > 0);
                topic.pause =
                    if found { FIRST_PAUSE } else { (topic.pause * 2).min(LONGEST_PAUSE) };
                topic.next = now + topic.pause;
            }
        }
        if self.topics.len() > MOST_TOPICS {
            self.topics.retain(|_, topic| topic.is_open());
        }
    }

    /// Whether more of a topic that somebody wants can be read at once.
    pub fn is_open(&self, wants: impl Fn(&str) -> bool) -> bool {
        self.topics.iter().any(|(name, topic)| topic.is_open() && wants(name))
    }

    /// How long until something can be read; `None` if all was read and a pass has found nothing new, and nothing that
    /// must wait.
    pub fn wait(
        &self,
        wants: impl Fn(&str) -> bool,
        (ticks, now): (Ticks, Instant),
    ) -> Option<Duration> {
        let again = |shard: &Shard| Some(shard.again?.since(ticks));
        let wanted = || self.topics.iter().filter(|(name, _)| wants(name)).map(|(_, topic)| topic);
        let soonest = wanted().flat_map(|topic| topic.shards.values().filter_map(again)).min();
        let left = self.pass.left.into_iter().chain(self.pass.left_before).min();
        let left = left.map(|at| at.saturating_duration_since(now));
        let soonest = soonest.into_iter().chain(left).min();
        if self.pass.has_ended {
            return soonest;
        }
        let times = wanted().map(|topic| topic.next).chain([self.pass.next]);
        times.map(|at| at.saturating_duration_since(now)).chain(soonest).min()
    }
}

impl Pass {
    fn first(now: Instant) -> Self {
        let (left, left_before) = (None, None);
        let (is_first, found, has_ended) = (true, false, false);
        Self { from: None, pages: 0, is_first, found, next: now, has_ended, left, left_before }
    }
}

impl Topic {
    fn add(&mut self, names: impl Iterator<Item = String>) {
        for name in names {
            self.shards.entry(name).or_default();
        }
    }

    fn is_open(&self) -> bool {
        self.shards.values().any(|shard| !shard.is_over)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.is_open() || self.next <= now
    }
}

/// The names that versions of Brighter give to some shards.
fn negative(topic: &str, shards: u32) -> impl Iterator<Item = String> {
    (1..shards).map(move |n| format!("{topic}_-{n}"))
}

#[cfg(test)]
mod tests;
