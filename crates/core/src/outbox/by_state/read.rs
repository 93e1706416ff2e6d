//! What was read and is not marked yet: pure bookkeeping.
//!
//! Nothing of this outlives a lease: whoever has the lane next reads everything again that is pending.

use super::{Marks, Pending, Row};
use crate::{
    Fence, Message,
    outbox::{
        Claim, Gained, LANES, Lane, LaneLease, Position, Reader, Reading, Settled, Settlement,
        Shared,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Mutex, MutexGuard},
};

/// Messages that a relay has and that are still pending in the store.
#[derive(Debug, Default)]
pub struct ReadMessages(Mutex<Content>);

#[derive(Debug, Default)]
struct Content {
    /// The lanes that are leased. Messages that were read under another lease are not these.
    leases: BTreeMap<Lane, Fence>,
    /// The last number; a position is made of it and of a lane.
    last: i64,
    by_position: BTreeMap<Position, (Lane, Row)>,
    rows: HashMap<Row, Position>,
}

impl ReadMessages {
    /// Lanes were shared out: what was read of others is forgotten, and so is what was read before of those that were
    /// gained just now.
    pub fn shared(&self, held: &[LaneLease], shared: &mut Shared) {
        let mut content = self.content();
        let is_lost = |lane: Lane| {
            shared.lost.contains(&lane) || shared.gained.iter().any(|it| it.lease.lane == lane)
        };
        let kept: BTreeMap<Lane, Fence> =
            held.iter().filter(|it| !is_lost(it.lane)).map(|it| (it.lane, it.fence)).collect();
        let stays =
            |(lane, fence): (&Lane, &Fence)| (kept.get(lane) == Some(fence)).then_some(*lane);
        let stay: BTreeSet<Lane> = content.leases.iter().filter_map(stays).collect();
        content.keep(|lane| stay.contains(&lane));
        content.leases = kept;
        for Gained { lease, cursor, .. } in &shared.gained {
            content.leases.insert(lease.lane, lease.fence);
            // Others may have numbered without lanes: all positions with this number count as given out.
            content.last = content.last.max(cursor >> LANE_BITS);
        }
        // A message that was set aside is read no more: to a relay, the lane begins behind all of these.
        let cursor = content.end();
        shared.gained.iter_mut().for_each(|gained| gained.cursor = cursor.0);
    }

    /// Lanes were given back.
    pub fn forget(&self, lanes: &[Lane]) {
        let mut content = self.content();
        content.keep(|lane| !lanes.contains(&lane));
        content.leases.retain(|lane, _| !lanes.contains(lane));
    }

    /// What must not be read again, and under which leases it was read.
    pub(super) fn known(&self) -> (HashSet<Row>, BTreeMap<Lane, Fence>) {
        let content = self.content();
        (content.rows.keys().cloned().collect(), content.leases.clone())
    }

    /// Gives positions to messages, in the order in which they were read. Lines that lag come first, so that one with
    /// more to read is behind the rest. What was asked for under `leases` that are not held any more is left out.
    pub(super) fn take_in(
        &self,
        pending: Pending,
        readers: &[Reader],
        leases: &BTreeMap<Lane, Fence>,
    ) -> Claim {
        let mut content = self.content();
        let is_held = |content: &Content, lane: Lane| {
            leases.contains_key(&lane) && content.leases.get(&lane) == leases.get(&lane)
        };
        let mut readings: Vec<(usize, super::PendingReading)> =
            pending.readings.into_iter().enumerate().take(readers.len()).collect();
        readings.sort_by_key(|(n, _)| readers[*n].takes.is_none());
        let mut given: Vec<Reading> = readers.iter().map(|_| Reading::default()).collect();
        for (n, reading) in readings {
            let lanes: BTreeSet<Lane> = readers[n].places.iter().map(|place| place.lane).collect();
            let mut messages = Vec::with_capacity(reading.messages.len());
            for (row, message) in reading.messages {
                if is_held(&content, message.lane) && lanes.contains(&message.lane) {
                    messages.extend(content.add(row, message));
                }
            }
            given[n] = Reading { messages, read_to: content.end().0, more: reading.more };
        }
        // A line that has more to read has not caught up.
        if given.iter().any(|reading| reading.more) {
            content.last += 1;
        }
        let end = content.end().0;
        given.iter_mut().filter(|it| !it.more).for_each(|reading| reading.read_to = end);
        let still = |lane: Lane| is_held(&content, lane);
        Claim {
            readings: given,
            due: pending.due.into_iter().filter(|it| still(it.lane)).collect(),
            next_due: pending.next_due,
            held_back: false,
            gone: pending.gone.into_iter().filter(|(lane, _)| still(*lane)).collect(),
            set_aside: pending.set_aside.into_iter().filter(|it| still(it.lane)).collect(),
        }
    }

    /// What a settlement means for messages that are pending.
    pub(super) fn marks(&self, settlement: &Settlement) -> Marks {
        let content = self.content();
        let lane = |progress: &super::super::Progress| LaneLease {
            lane: progress.lane,
            fence: progress.fence,
        };
        let mut marks = Marks {
            epoch: settlement.epoch.clone(),
            number: settlement.number,
            lanes: settlement.lanes.iter().map(lane).collect(),
            last: content.end(),
            ..Marks::default()
        };
        let is_leased = |lane: Lane| {
            let fence = marks.lanes.iter().find(|it| it.lane == lane).map(|it| it.fence);
            fence.is_some() && content.leases.get(&lane) == fence.as_ref()
        };
        let row = |lane: Lane, position: Position| {
            content
                .by_position
                .get(&position)
                .filter(|_| is_leased(lane))
                .map(|(_, row)| row.clone())
        };
        let (mut done, mut aside_done) = (Vec::new(), Vec::new());
        for (lane, position) in &settlement.done {
            match row(*lane, *position) {
                Some(row) => done.push((*lane, row)),
                None => aside_done.push((*lane, *position)),
            }
        }
        let aside = settlement.aside.iter().map(|set| (row(set.lane, set.position), set.clone()));
        marks.aside = aside.collect();
        (marks.done, marks.aside_done) = (done, aside_done);
        marks
    }

    /// The store has what a settlement said: these need not be remembered.
    pub(super) fn marked(&self, settlement: &Settlement, settled: &Settled) {
        let mut content = self.content();
        let done = settlement.done.iter().copied();
        let aside = settlement.aside.iter().map(|set| (set.lane, set.position));
        for (lane, position) in done.chain(aside) {
            if !settled.late.contains(&lane)
                && let Some((_, row)) = content.by_position.remove(&position)
            {
                content.rows.remove(&row);
            }
        }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

/// Positions of different lanes are different, also if different relays gave them out.
const LANE_BITS: u32 = LANES.ilog2();

impl Content {
    /// Everything that was given out is up to here.
    fn end(&self) -> Position {
        Position(self.last << LANE_BITS | i64::from(LANES - 1))
    }

    /// A message that was read; `None` if it is known already.
    fn add(&mut self, row: Row, message: Message) -> Option<Message> {
        if self.rows.contains_key(&row) {
            return None;
        }
        self.last += 1;
        let position = Position(self.last << LANE_BITS | i64::from(message.lane.0));
        self.by_position.insert(position, (message.lane, row.clone()));
        self.rows.insert(row, position);
        // People know it by its position, if the store does not say otherwise.
        let is_unnamed = message.id == message.position.into();
        let id = if is_unnamed { position.into() } else { message.id };
        Some(Message { id, position, ..message })
    }

    fn keep(&mut self, lanes: impl Fn(Lane) -> bool) {
        let rows = &mut self.rows;
        self.by_position.retain(|_, (lane, row)| {
            let stays = lanes(*lane);
            if !stays {
                rows.remove(row);
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests;
