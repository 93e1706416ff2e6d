//! What is known about where messages are. Pure.

use super::{
    Seen,
    recent::{INDEX_LAG, Recent},
};
use crate::item::Item;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::{Duration, Instant},
};
use tidegate_core::outbox::{Lane, by_state::Row};

/// After so many looks that found nothing, one segment is enough.
const IDLE: u32 = 3;

/// Two looks that find little are so far apart, at least: each costs some requests.
const APART: Duration = Duration::from_millis(100);

/// Shards that are read in one look.
const SHARDS_AT_ONCE: usize = 8;

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
    /// How far the shards are read that have something new, if there is more than a page.
    backlog: Option<Backlog>,
}

/// More is outstanding than fits into one page.
#[derive(Clone, Debug, Default)]
struct Backlog {
    shards: BTreeMap<String, Shard>,
    /// Where the scan goes on that finds further shards; `None` when it is over.
    scan: Option<Option<Item>>,
    /// The shard that was read last.
    last: String,
}

#[derive(Clone, Debug)]
struct Shard {
    topic: String,
    from: Option<Item>,
    is_over: bool,
}

/// What to do in one look.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Look {
    /// Scan all of the index, in so many segments.
    Scan { segments: u32 },
    /// Read these shards in order, each from where on; and go on with the scan from there.
    Shards { shards: Vec<(String, Option<Item>)>, scan: Option<Option<Item>> },
}

impl Finder {
    pub fn gain(&mut self, lanes: impl Iterator<Item = Lane>, now: Instant) {
        self.gained.extend(lanes.map(|lane| (lane, now)));
        // What is behind a place that was read before belongs to these lanes, too.
        self.backlog = None;
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

    /// What to do next. Only shards of topics that somebody wants are read.
    pub(super) fn look(
        &mut self,
        segments: u32,
        wants: impl Fn(&str) -> bool,
        now: Instant,
    ) -> Look {
        self.recent.tidy(now);
        self.gained.retain(|_, at| now.saturating_duration_since(*at) <= INDEX_LAG);
        let Some(backlog) = &mut self.backlog else {
            return Look::Scan { segments: if self.idle >= IDLE { 1 } else { segments } };
        };
        let is_next = |(_, shard): &(&String, &Shard)| !shard.is_over && wants(&shard.topic);
        let after = backlog.shards.range::<String, _>((
            std::ops::Bound::Excluded(&backlog.last),
            std::ops::Bound::Unbounded,
        ));
        let before = backlog.shards.range::<String, _>(..=&backlog.last);
        let next = after.chain(before).filter(is_next).take(SHARDS_AT_ONCE);
        let shards: Vec<(String, Option<Item>)> =
            next.map(|(name, shard)| (name.clone(), shard.from.clone())).collect();
        if let Some((last, _)) = shards.last() {
            backlog.last.clone_from(last);
        }
        Look::Shards { shards, scan: backlog.scan.clone() }
    }

    /// All that is outstanding was seen at once.
    pub(super) fn saw_all(&mut self, is_nothing: bool) {
        self.idle = if is_nothing { self.idle.saturating_add(1) } else { 0 };
        self.backlog = None;
    }

    /// There is more than a page. These of it are new.
    pub(super) fn saw_some<'a>(&mut self, new: impl Iterator<Item = &'a Seen>) {
        self.idle = 0;
        self.backlog = Some(Backlog { scan: Some(None), ..Backlog::default() });
        self.found_shards(new);
    }

    /// The scan went on to here.
    pub(super) fn scanned<'a>(&mut self, new: impl Iterator<Item = &'a Seen>, next: Option<Item>) {
        self.found_shards(new);
        if let Some(backlog) = &mut self.backlog {
            backlog.scan = next.map(Some);
        }
    }

    fn found_shards<'a>(&mut self, new: impl Iterator<Item = &'a Seen>) {
        let Some(backlog) = &mut self.backlog else { return };
        for seen in new.filter(|seen| !seen.found.shard.is_empty()) {
            let topic = &seen.found.message.topic;
            backlog.shards.entry(seen.found.shard.clone()).or_insert_with(|| Shard {
                topic: topic.clone(),
                from: None,
                is_over: false,
            });
        }
    }

    /// A shard was read to here; to its end if `next` is none.
    pub(super) fn read(&mut self, shard: &str, next: Option<Item>) {
        let shard = self.backlog.as_mut().and_then(|backlog| backlog.shards.get_mut(shard));
        if let Some(shard) = shard {
            shard.is_over = next.is_none();
            shard.from = next;
        }
    }

    /// Not all of what was read in these shards was taken: they are read from the beginning, where what was taken is
    /// known, so that what is left comes before what follows it.
    pub(super) fn read_again(&mut self, shards: &BTreeSet<String>) {
        let Some(backlog) = &mut self.backlog else { return };
        for shard in backlog.shards.iter_mut().filter(|(name, _)| shards.contains(*name)) {
            (shard.1.from, shard.1.is_over) = (None, false);
        }
    }

    /// A look is over. Returns whether there is more to look at now. When all shards were read, and the scan is over,
    /// it begins anew.
    pub(super) fn looked(
        &mut self,
        found: usize,
        page: usize,
        wants: impl Fn(&str) -> bool,
        now: Instant,
    ) -> bool {
        self.looked = Some((now, found * 2 >= page));
        let Some(backlog) = &self.backlog else { return false };
        let is_open = |shard: &Shard| !shard.is_over && wants(&shard.topic);
        let more = backlog.scan.is_some() || backlog.shards.values().any(is_open);
        if !more {
            self.backlog = None;
        }
        more
    }

    /// Whether what an index shows of a lane may be done already.
    pub(super) fn must_verify(&self, lane: Lane) -> bool {
        self.gained.contains_key(&lane) || self.recent.is_incomplete()
    }

    /// Those of them that are new to this relay.
    pub(super) fn unknown<'a>(&self, seen: &'a [Seen], known: &HashSet<Row>) -> Vec<&'a Seen> {
        let is_new = |it: &&Seen| !known.contains(&it.row) && !self.recent.contains(&it.row);
        seen.iter().filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests;
