//! What was set aside, a transaction at a time.

use super::{
    OPERATION,
    actions::{
        Room, Tables, check_lanes, delete_record, deliver_aside, delivered, leave_outstanding,
        move_aside, put_record,
    },
    sizes::LARGE,
};
use crate::{
    DynamoDb, MAX_ACTIONS,
    aside::{Part, Place, Record},
    error::{Failure, Refused, refused_actions},
    item,
    read::parse,
    ticks::Ticks,
};
use aws_sdk_dynamodb::types::TransactWriteItem;
use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};
use tidegate_core::{
    StoreError,
    outbox::{
        HeldKey, Lane, LaneLease, Position, SetAside, Settled, StuckState,
        by_state::{AsideRow, Marks, Row},
    },
};

/// Messages of one transaction: up to three actions each, and one or two for all.
const MOST_UNITS: usize = 32;

/// Bytes of one transaction. DynamoDB takes 4 MB and counts items as a whole, whatever is changed of them.
pub(crate) const MOST_BYTES: usize = 3_500 << 10;

/// What one message needs, all or nothing.
struct Unit {
    lane: Lane,
    position: Position,
    actions: Vec<TransactWriteItem>,
    /// Instead, each if the item has no room for what the one before would add.
    smaller: VecDeque<Vec<TransactWriteItem>>,
    /// Instead, if the message is not there any more as it was.
    otherwise: Vec<TransactWriteItem>,
    /// What is known about it then; `None`: it is not set aside any more.
    becomes: Option<AsideRow>,
    /// Its name.
    row: Row,
    /// Whether it was outstanding until now.
    was_outstanding: bool,
    /// The keys that it holds, or held.
    keys: Vec<HeldKey>,
    /// Of the items that it touches, at most.
    bytes: usize,
}

/// What became of a transaction.
enum Written {
    All,
    /// Its units have changed: it can be sent again.
    Changed,
    /// It must be smaller.
    Refused(StoreError),
}

impl DynamoDb {
    pub(super) async fn write_aside(
        &self,
        marks: &Marks,
        late: BTreeSet<Lane>,
        at: Ticks,
    ) -> Result<Settled, StoreError> {
        let _alone = self.writing.lock().await;
        let mut units = self.units(marks, at)?;
        units.retain(|unit| !late.contains(&unit.lane));
        let mut settled = Settled { late: late.into_iter().collect(), ..Settled::default() };
        let mut touched: BTreeSet<HeldKey> =
            units.iter().flat_map(|unit| unit.keys.clone()).collect();
        let mut chunks = chunks(units);
        while let Some(mut chunk) = chunks.pop_front() {
            chunk.retain(|unit: &Unit| !settled.late.contains(&unit.lane));
            if chunk.is_empty() {
                continue;
            }
            match self.write_chunk(&mut chunk, marks, &mut settled).await? {
                Written::All => self.written(chunk),
                Written::Changed => chunks.push_front(chunk),
                Written::Refused(error) if chunk.len() == 1 => return Err(error),
                // One of them may be the reason, or all of them together: each part is tried, in its order.
                Written::Refused(_) => {
                    let rest = chunk.split_off(chunk.len() / 2);
                    chunks.push_front(rest);
                    chunks.push_front(chunk);
                }
            }
        }
        touched.retain(|key| !settled.late.contains(&key.lane));
        settled.freed = self.book().free(touched, self.now());
        Ok(settled)
    }

    /// What each message needs. What is done comes last: until then it holds its key.
    fn units(&self, marks: &Marks, at: Ticks) -> Result<Vec<Unit>, StoreError> {
        let (now, book) = (self.now(), self.book());
        let mut units = Vec::new();
        for (row, set) in &marks.aside {
            let known = book.get(set.position);
            units.extend(self.set_aside(row.as_ref(), set, known, now)?);
        }
        for (lane, position) in &marks.aside_done {
            if let Some(row) = book.get(*position) {
                units.push(self.done(*lane, *position, row, at)?);
            }
        }
        Ok(units)
    }

    fn set_aside(
        &self,
        row: Option<&Row>,
        set: &SetAside,
        known: Option<&AsideRow>,
        now: Duration,
    ) -> Result<Option<Unit>, StoreError> {
        let (tables, position) = (self.tables(), set.position);
        let unit = |record: Record, actions, otherwise, was_outstanding| {
            let keys = record.row.held_key().into_iter().chain(known.and_then(AsideRow::held_key));
            Some(Unit {
                lane: set.lane,
                position,
                actions,
                smaller: VecDeque::new(),
                otherwise,
                keys: keys.collect(),
                bytes: record.bytes.max(LARGE) + item::size(&record.item()),
                row: record.row.row.clone(),
                becomes: Some(record.row),
                was_outstanding,
            })
        };
        if let Some(known) = known {
            let mut becomes = known.clone();
            becomes.set(set, now);
            if is_dead_already(known, &becomes) {
                return Ok(None);
            }
            let from = Place::of(Part::of(known), known.lane, position);
            let record = self.record(position, becomes);
            let to = record.place();
            let mut actions =
                vec![put_record(tables, &record)?, move_aside(tables, record.id(), from, to)?];
            if from != to {
                actions.push(delete_record(tables, from)?);
            }
            let otherwise = vec![delete_record(tables, from)?];
            return Ok(unit(record, actions, otherwise, false));
        }
        // Otherwise it was settled before, or is not known to anybody.
        let Some(row) = row else { return Ok(None) };
        let Some((outstanding, id)) = parse(row) else { return Ok(None) };
        let record = self.record(position, AsideRow::new(row.clone(), set, now));
        let actions = vec![
            put_record(tables, &record)?,
            leave_outstanding(tables, id, outstanding, record.place())?,
        ];
        Ok(unit(record, actions, Vec::new(), true))
    }

    fn record(&self, position: Position, row: AsideRow) -> Record {
        let bytes = self.sizes().get(&row.row);
        Record { position, row, bytes }
    }

    fn done(
        &self,
        lane: Lane,
        position: Position,
        row: &AsideRow,
        at: Ticks,
    ) -> Result<Unit, StoreError> {
        let (tables, ttl) = (self.tables(), self.address().ttl);
        let place = Place::of(Part::of(row), row.lane, position);
        let id = parse(&row.row).map_or("", |(_, id)| id);
        let deliver = |room| {
            let delivered = delivered(at, ttl, room, "#aside");
            Ok(vec![delete_record(tables, place)?, deliver_aside(tables, id, place, delivered)?])
        };
        let mut smaller =
            Room::ALL.into_iter().map(deliver).collect::<Result<VecDeque<_>, StoreError>>()?;
        Ok(Unit {
            lane,
            position,
            actions: smaller.pop_front().unwrap_or_default(),
            smaller,
            otherwise: vec![delete_record(tables, place)?],
            becomes: None,
            row: row.row.clone(),
            was_outstanding: false,
            keys: row.held_key().into_iter().collect(),
            bytes: self.sizes().get(&row.row).max(LARGE),
        })
    }

    /// Sends a transaction once, and says what to do next.
    async fn write_chunk(
        &self,
        chunk: &mut [Unit],
        marks: &Marks,
        settled: &mut Settled,
    ) -> Result<Written, StoreError> {
        let actions = self.actions(chunk, marks)?;
        let failure = match self.client.transact(OPERATION, actions).await {
            Ok(()) => return Ok(Written::All),
            Err(failure) => failure,
        };
        if let Failure::Cancelled(codes) = &failure {
            if refused_actions(codes, 0..1) == Some(Refused::Condition) {
                let lanes: BTreeSet<Lane> = chunk.iter().map(|unit| unit.lane).collect();
                let leases: Vec<LaneLease> =
                    marks.lanes.iter().filter(|it| lanes.contains(&it.lane)).copied().collect();
                let late = self.lost_lanes(&leases).await?;
                if !late.is_empty() {
                    settled.late.extend(late);
                    return Ok(Written::Changed);
                }
            }
            if fall_back(chunk, codes) {
                return Ok(Written::Changed);
            }
        }
        match failure {
            Failure::Cancelled(_) | Failure::Invalid(_) => {
                Ok(Written::Refused(failure.into_error(OPERATION)))
            }
            failure => Err(failure.into_error(OPERATION)),
        }
    }

    /// These are in the table now.
    fn written(&self, chunk: Vec<Unit>) {
        let outstanding = chunk.iter().filter(|unit| unit.was_outstanding);
        let rows = outstanding.map(|unit| unit.row.clone());
        self.finder().marked(rows, Instant::now());
        let is_over = |unit: &&Unit| unit.becomes.as_ref().is_none_or(AsideRow::is_over);
        for unit in chunk.iter().filter(is_over) {
            self.sizes().remove(&unit.row);
        }
        if let Some(written) = self.written_since().as_mut() {
            written.extend(chunk.iter().map(|unit| unit.position));
        }
        let (set, done): (Vec<Unit>, Vec<Unit>) =
            chunk.into_iter().partition(|unit| unit.becomes.is_some());
        let set = set.into_iter().filter_map(|unit| Some((unit.position, unit.becomes?)));
        let done = done.into_iter().map(|unit| unit.position);
        self.book().settle(set, done, self.now());
    }

    fn actions(&self, chunk: &[Unit], marks: &Marks) -> Result<Vec<TransactWriteItem>, StoreError> {
        let lanes: BTreeSet<Lane> = chunk.iter().map(|unit| unit.lane).collect();
        let leases: Vec<LaneLease> =
            marks.lanes.iter().filter(|lease| lanes.contains(&lease.lane)).copied().collect();
        let mut actions = vec![check_lanes(self.tables(), &leases)?];
        actions.extend(chunk.iter().flat_map(|unit| unit.actions.iter().cloned()));
        Ok(actions)
    }

    pub(crate) fn tables(&self) -> Tables<'_> {
        Tables { messages: &self.address().table, side: &self.address().side_table }
    }
}

/// A copy of a settlement that came late says once more that a message is dead. Somebody may have decided about it by
/// now, and that counts.
fn is_dead_already(known: &AsideRow, becomes: &AsideRow) -> bool {
    known.state == StuckState::Dead && AsideRow { due: known.due, ..becomes.clone() } == *known
}

/// The transactions in which messages are written, in their order.
fn chunks(units: Vec<Unit>) -> VecDeque<Vec<Unit>> {
    let mut chunks: VecDeque<Vec<Unit>> = VecDeque::new();
    let (mut actions, mut bytes) = (0, 0);
    for unit in units {
        actions += unit.actions.len();
        bytes += unit.bytes;
        match chunks.back_mut() {
            Some(chunk)
                if chunk.len() < MOST_UNITS && actions < MAX_ACTIONS && bytes <= MOST_BYTES =>
            {
                chunk.push(unit);
            }
            _ => {
                (actions, bytes) = (unit.actions.len(), unit.bytes);
                chunks.push_back(vec![unit]);
            }
        }
    }
    chunks
}

/// Messages that are not there any more as they were do with what is left to do, and those whose items have too little
/// room with less. Returns whether there were such.
fn fall_back(chunk: &mut [Unit], codes: &[String]) -> bool {
    let (mut first, mut any) = (1, false);
    for unit in chunk.iter_mut() {
        let own = first..first + unit.actions.len();
        first = own.end;
        match refused_actions(codes, own) {
            Some(Refused::Condition) => {
                any = true;
                unit.actions = std::mem::take(&mut unit.otherwise);
                unit.smaller.clear();
                unit.becomes = None;
            }
            Some(Refused::Invalid) => {
                let smaller = unit.smaller.pop_front();
                any |= smaller.is_some();
                unit.actions = smaller.unwrap_or_else(|| std::mem::take(&mut unit.actions));
            }
            None => {}
        }
    }
    any
}

#[cfg(test)]
mod tests;
