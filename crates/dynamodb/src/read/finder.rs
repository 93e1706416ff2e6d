//! Where to look for messages that are outstanding. Pure.

use super::{
    Seen,
    backlog::{Backlog, Plan},
    merge::ShardPage,
    recent::{INDEX_LAG, Recent},
};
use crate::{item::Item, ticks::Ticks};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::{Duration, Instant},
};
use tidegate_core::outbox::{Lane, by_state::Row};

/// After so many looks that found nothing, one segment is enough.
const IDLE: u32 = 3;

/// Two looks that find little are so far apart, at least: each costs some requests.
const APART: Duration = Duration::from_millis(100);

/// What is known about where messages are.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    pub recent: Recent,
    /// Lanes that this relay has not had for long. What indexes show of them may have been done by the relay before.
    gained: BTreeMap<Lane, Instant>,
    /// How many looks in a row have found nothing at all.
    idle: u32,
    /// When it was looked last, and whether that found much.
    looked: Option<(Instant, bool)>,
    /// What is read while more than one page is outstanding.
    backlog: Option<Backlog>,
    /// Whether a shard with a negative number was seen.
    has_negative: bool,
    /// The lanes of the last look. What was read then of other lanes was passed by.
    lanes: HashSet<Lane>,
    /// What the last look gave to the relay.
    given: Vec<(Row, Lane)>,
}

/// What to do in one look.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Look {
    /// Scan all of the index, in so many segments.
    Scan { segments: u32 },
    /// Read shards, and go on with the search for others.
    Shards(Plan),
}

/// What became of the messages of a look.
#[derive(Debug, Default)]
pub(super) struct Fates {
    /// Nobody had room for them.
    pub left: HashSet<Row>,
    /// Not due before these times.
    pub later: HashMap<Row, Ticks>,
}

impl Finder {
    /// One that knows of negative shards from the beginning.
    #[cfg(test)]
    pub fn with_negative() -> Self {
        Self { has_negative: true, ..Self::default() }
    }

    pub fn gain(&mut self, lanes: impl Iterator<Item = Lane>, now: Instant) {
        self.gained.extend(lanes.map(|lane| (lane, now)));
        if let Some(backlog) = &mut self.backlog {
            backlog.begin_anew(now);
        }
    }

    pub fn forget(&mut self, lanes: impl Fn(Lane) -> bool) {
        self.gained.retain(|lane, _| !lanes(*lane));
    }

    /// These were marked: indexes may still show them.
    pub fn marked(&mut self, rows: impl Iterator<Item = Row>, now: Instant) {
        rows.for_each(|row| self.recent.add(row, now));
    }

    /// How long to wait before the next look.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        match self.looked {
            Some((at, false)) => APART.saturating_sub(now.saturating_duration_since(at)),
            _ => Duration::ZERO,
        }
    }

    /// The next look is for these lanes, by a relay that has these messages. Lanes may come while a look is under way
    /// that does not know of them, or be lost and come again, so that what it gave was not taken: then shards are read
    /// from their beginnings, so that nothing is read before what was passed by.
    pub(super) fn begin(&mut self, lanes: HashSet<Lane>, known: &HashSet<Row>, now: Instant) {
        let was_dropped = |(row, lane): &(Row, Lane)| {
            lanes.contains(lane) && !known.contains(row) && !self.recent.contains(row)
        };
        let is_behind = !lanes.is_subset(&self.lanes) || self.given.iter().any(was_dropped);
        if let Some(backlog) = self.backlog.as_mut().filter(|_| is_behind) {
            backlog.begin_anew(now);
        }
        self.given.clear();
        self.lanes = lanes;
    }

    /// The look gave these to the relay.
    pub(super) fn gave(&mut self, given: impl Iterator<Item = (Row, Lane)>) {
        self.given = given.collect();
    }

    /// What to do next: a scan of all, or shards of topics that somebody wants, up to so many messages.
    pub(super) fn look(
        &mut self,
        segments: u32,
        wants: impl Fn(&str) -> bool,
        (most, page): (usize, u32),
        now: (Ticks, Instant),
    ) -> Look {
        self.recent.tidy(now.1);
        self.gained.retain(|_, at| now.1.saturating_duration_since(*at) <= INDEX_LAG);
        match &mut self.backlog {
            None => Look::Scan { segments: if self.idle >= IDLE { 1 } else { segments } },
            Some(backlog) => Look::Shards(backlog.plan(wants, (most, page), now)),
        }
    }

    /// All that is outstanding was seen at once.
    pub(super) fn saw_all(&mut self, is_nothing: bool) {
        self.idle = if is_nothing { self.idle.saturating_add(1) } else { 0 };
    }

    /// There is more than a page. These of it are new.
    pub(super) fn saw_some<'a>(
        &mut self,
        new: impl Iterator<Item = &'a Seen>,
        shards: u32,
        now: Instant,
    ) {
        self.idle = 0;
        let backlog = Backlog::new(shards, self.has_negative, now);
        let backlog = self.backlog.insert(backlog);
        for seen in with_shard(new) {
            backlog.note(seen, now);
        }
    }

    /// Of a page of the index of all topics, some messages must wait, the first for so long.
    pub(super) fn leave(&mut self, wait: Duration, now: Instant) {
        if let Some(backlog) = &mut self.backlog {
            backlog.leave(wait, now);
        }
    }

    /// A page of the index of all topics was read. These of it are new.
    pub(super) fn passed<'a>(
        &mut self,
        new: impl Iterator<Item = &'a Seen>,
        next: Option<Item>,
        now: Instant,
    ) {
        let Some(backlog) = &mut self.backlog else { return };
        if backlog.passed(with_shard(new), next, now) {
            self.has_negative = backlog.has_negative();
            self.backlog = None;
        }
    }

    /// Shards were read, and this became of their messages.
    pub(super) fn read(&mut self, pages: &[ShardPage], fates: &Fates, now: Instant) {
        let Some(backlog) = &mut self.backlog else { return };
        for page in pages {
            let is_left = |row: &Row| fates.left.contains(row);
            let used = page.rows.iter().position(is_left).unwrap_or(page.rows.len());
            let later = page.rows[..used].iter().filter_map(|row| fates.later.get(row));
            backlog.read(page, used, later.min().copied());
        }
        backlog.rest(pages, now);
    }

    /// A look is over, and has found so many messages.
    pub(super) fn looked(&mut self, found: usize, page: u32, now: Instant) {
        self.looked = Some((now, found * 2 >= page as usize));
    }

    /// Whether more can be read at once of topics that somebody wants.
    pub(super) fn has_more(&self, wants: impl Fn(&str) -> bool) -> bool {
        self.backlog.as_ref().is_some_and(|backlog| backlog.is_open(wants))
    }

    /// When to look again at the latest; `None` if nothing is known that would be found then.
    pub(super) fn wait(
        &self,
        wants: impl Fn(&str) -> bool,
        now: (Ticks, Instant),
    ) -> Option<Duration> {
        self.backlog.as_ref()?.wait(wants, now)
    }

    /// Whether what an index shows of a lane may be done already.
    pub(super) fn must_verify(&self, lane: Lane) -> bool {
        self.gained.contains_key(&lane) || self.recent.is_incomplete()
    }
}

/// A message without a shard is in no order, and is found by scans only.
fn with_shard<'a>(seen: impl Iterator<Item = &'a Seen>) -> impl Iterator<Item = &'a Seen> {
    seen.filter(|seen| !seen.found.shard.is_empty())
}

#[cfg(test)]
mod tests;
