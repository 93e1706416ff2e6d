//! What was set aside, a transaction at a time.

use super::{
    OPERATION,
    actions::{
        Tables, check_lanes, delete_record, deliver_aside, leave_outstanding, move_aside,
        put_record,
    },
};
use crate::{
    DynamoDb, MAX_ACTIONS,
    aside::{Part, Place, Record},
    client::jittered,
    error::{Failure, throttled},
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
    limits::STORE_DEADLINE,
    outbox::{
        HeldKey, Lane, LaneLease, Position, SetAside, Settled, StuckState,
        by_state::{AsideRow, Marks, Row},
    },
};
use tokio::time::sleep;

/// Bytes of one transaction: DynamoDB takes 4 MB, and reasons are the only long part of a record.
const MOST_UNITS: usize = 33;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What one message needs, all or nothing.
struct Unit {
    lane: Lane,
    position: Position,
    actions: Vec<TransactWriteItem>,
    /// Instead, if the message is not there any more as it was.
    otherwise: Vec<TransactWriteItem>,
    /// What is known about it then; `None`: it is not set aside any more.
    becomes: Option<AsideRow>,
    /// The name by which it was outstanding.
    row: Option<Row>,
    /// The keys that it holds, or held.
    keys: Vec<HeldKey>,
}

impl DynamoDb {
    pub(super) async fn write_aside(
        &self,
        marks: &Marks,
        at: Ticks,
    ) -> Result<Settled, StoreError> {
        let _alone = self.writing.lock().await;
        let mut units: VecDeque<Unit> = self.units(marks, at)?.into();
        let mut touched: BTreeSet<HeldKey> =
            units.iter().flat_map(|unit| unit.keys.clone()).collect();
        let mut settled = Settled::default();
        while !units.is_empty() {
            let mut chunk = Vec::new();
            let mut actions = 1;
            while let Some(unit) = units.front() {
                actions += unit.actions.len();
                if actions > MAX_ACTIONS || chunk.len() >= MOST_UNITS {
                    break;
                }
                chunk.extend(units.pop_front());
            }
            chunk.retain(|unit: &Unit| !settled.late.contains(&unit.lane));
            self.write_chunk(chunk, marks, &mut settled).await?;
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
        let unit = |actions, otherwise, becomes: AsideRow, row| {
            let keys = becomes.held_key().into_iter().chain(known.and_then(AsideRow::held_key));
            let keys = keys.collect();
            Some(Unit {
                lane: set.lane,
                position,
                actions,
                otherwise,
                becomes: Some(becomes),
                row,
                keys,
            })
        };
        if let Some(known) = known {
            let mut becomes = known.clone();
            becomes.set(set, now);
            if is_dead_already(known, &becomes) {
                return Ok(None);
            }
            let from = Place::of(Part::of(known), known.lane, position);
            let record = Record { position, row: becomes.clone() };
            let to = record.place();
            let mut actions =
                vec![put_record(tables, &record)?, move_aside(tables, record.id(), &from, &to)?];
            if from != to {
                actions.push(delete_record(tables, &from)?);
            }
            let otherwise = vec![delete_record(tables, &from)?];
            return Ok(unit(actions, otherwise, becomes, None));
        }
        // Otherwise it was settled before, or is not known to anybody.
        let Some(row) = row else { return Ok(None) };
        let Some((outstanding, id)) = parse(row) else { return Ok(None) };
        let record = Record { position, row: AsideRow::new(row.clone(), set, now) };
        let actions = vec![
            put_record(tables, &record)?,
            leave_outstanding(tables, id, outstanding, &record.place())?,
        ];
        Ok(unit(actions, Vec::new(), record.row, Some(row.clone())))
    }

    fn done(
        &self,
        lane: Lane,
        position: Position,
        row: &AsideRow,
        at: Ticks,
    ) -> Result<Unit, StoreError> {
        let tables = self.tables();
        let place = Place::of(Part::of(row), row.lane, position);
        let id = parse(&row.row).map_or("", |(_, id)| id);
        let delete = || delete_record(tables, &place);
        let deliver = deliver_aside(tables, id, &place, at, self.address().ttl)?;
        let (actions, otherwise) = (vec![delete()?, deliver], vec![delete()?]);
        let keys = row.held_key().into_iter().collect();
        Ok(Unit { lane, position, actions, otherwise, becomes: None, row: None, keys })
    }

    async fn write_chunk(
        &self,
        mut chunk: Vec<Unit>,
        marks: &Marks,
        settled: &mut Settled,
    ) -> Result<(), StoreError> {
        let (mut pause, until) = (FIRST_PAUSE, Instant::now() + STORE_DEADLINE);
        loop {
            chunk.retain(|unit| !settled.late.contains(&unit.lane));
            if chunk.is_empty() {
                return Ok(());
            }
            match self.client.transact(OPERATION, self.actions(&chunk, marks)?).await {
                Ok(()) => break,
                Err(Failure::Cancelled(codes)) => {
                    if is_refused(&codes, 0) {
                        settled.late.extend(self.late(&chunk, marks).await?);
                    }
                    if !fall_back(&mut chunk, &codes) && !is_refused(&codes, 0) {
                        // Somebody else writes to the same items at this moment.
                        if Instant::now() + pause > until {
                            return Err(throttled(OPERATION, "transactions disturb each other"));
                        }
                        sleep(jittered(pause)).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                }
                Err(failure) => return Err(failure.into_error(OPERATION)),
            }
        }
        let rows = chunk.iter().filter_map(|unit| unit.row.clone());
        self.finder().marked(rows, Instant::now());
        let (set, done): (Vec<Unit>, Vec<Unit>) =
            chunk.into_iter().partition(|unit| unit.becomes.is_some());
        let set = set.into_iter().filter_map(|unit| Some((unit.position, unit.becomes?)));
        let done = done.into_iter().map(|unit| unit.position);
        self.book().settle(set, done, self.now());
        Ok(())
    }

    /// The lanes of some messages that are not leased any more.
    async fn late(&self, chunk: &[Unit], marks: &Marks) -> Result<Vec<Lane>, StoreError> {
        let leases = self.client.leases(OPERATION).await?;
        let lanes: BTreeSet<Lane> = chunk.iter().map(|unit| unit.lane).collect();
        let is_held = |lane: &Lane| {
            let fence = marks.lanes.iter().find(|lease| lease.lane == *lane).map(|it| it.fence);
            fence.is_some() && leases.lanes.get(lane).map(|held| held.fence) == fence
        };
        Ok(lanes.into_iter().filter(|lane| !is_held(lane)).collect())
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

fn is_refused(codes: &[String], action: usize) -> bool {
    codes.get(action).is_some_and(|code| code == "ConditionalCheckFailed")
}

/// Messages that are not there any more as they were do with what is left to do. Returns whether there were such.
fn fall_back(chunk: &mut [Unit], codes: &[String]) -> bool {
    let (mut first, mut any) = (1, false);
    for unit in chunk.iter_mut() {
        let next = first + unit.actions.len();
        if (first..next).any(|action| is_refused(codes, action)) {
            any = true;
            unit.actions = std::mem::take(&mut unit.otherwise);
            unit.becomes = None;
        }
        first = next;
    }
    any
}
