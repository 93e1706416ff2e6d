//! What a relay must know about lanes that it has just leased: how they stand, and what was set aside there.
//!
//! Millions of messages may be set aside, so they are read in pages, and a share of lanes reads for a part of the
//! lease only: the relay renews its lanes, works on those that are known, and asks again. What was read so far is
//! kept here meanwhile. It stays true: nobody but this relay settles the lanes, and what people decide about them is
//! noted in `look_again`.

use super::share::{OPERATION, numbers};
use crate::{decode::get, error::corrupt, pool::Pool};
use std::{collections::VecDeque, time::Duration};
use tidegate_core::{
    StoreError, WorkerId,
    outbox::{Epoch, Gained, HeldKey, KeyHash, Lane, LaneLease, Position, Route},
};
use tokio::time::Instant;
use tokio_postgres::{Row, types::Type};

/// Messages that one statement looks at. It locks a lane for a few milliseconds.
const PAGE: i64 = 5_000;

/// Lanes that are read together have at most about so many messages; a larger one is read alone.
const GROUP: i64 = 20_000;

/// Lanes that one relay has leased and cannot work on yet.
pub(super) struct TakeOver {
    relay: WorkerId,
    epoch: Epoch,
    groups: VecDeque<Group>,
}

impl TakeOver {
    pub fn new(relay: &WorkerId, epoch: &Epoch) -> Self {
        Self { relay: relay.clone(), epoch: epoch.clone(), groups: VecDeque::new() }
    }

    pub fn is_of(&self, relay: &WorkerId) -> bool {
        self.relay == *relay
    }

    /// How many lanes are not known yet.
    pub fn pending(&self) -> usize {
        self.groups.iter().map(|group| group.lanes.len()).sum()
    }

    /// Forgets what is not true any more: the relay has not got these lanes any longer, or not since then.
    pub fn keep(&mut self, epoch: &Epoch, leased: &[LaneLease]) {
        let is_leased = |gained: &Gained| leased.contains(&gained.lease);
        self.groups.retain(|group| self.epoch == *epoch && group.lanes.iter().all(is_leased));
    }

    /// The lanes that are not known yet.
    pub fn leases(&self) -> Vec<LaneLease> {
        self.groups.iter().flat_map(|group| &group.lanes).map(|gained| gained.lease).collect()
    }

    /// Lanes were leased. Returns those in which nothing is set aside, and the number of the relay's last settlement.
    pub async fn add(
        &mut self,
        pool: &Pool,
        gained: Vec<Gained>,
    ) -> Result<(Vec<Gained>, u64), StoreError> {
        let lanes = numbers(gained.iter().map(|it| it.lease.lane));
        let params = [
            (&lanes as _, Type::INT2_ARRAY),
            (&self.relay.0 as _, Type::TEXT),
            (&GROUP as _, Type::INT8),
        ];
        let sql = include_str!("../sql/outbox/set_aside.sql");
        let rows = pool.query(pool.leased(OPERATION), sql, &params).await?;
        let (mut known, mut settled, mut room) = (Vec::new(), 0, 0);
        for gained in gained {
            let is_this = |row: &&Row| {
                get(OPERATION, row, "lane").is_ok_and(|it| lane(it) == gained.lease.lane)
            };
            let row = rows.iter().find(is_this);
            let row = row.ok_or_else(|| corrupt(OPERATION, "a lane is missing in the answer"))?;
            settled = get::<i64>(OPERATION, row, "settled")?.unsigned_abs();
            let messages: i64 = get(OPERATION, row, "messages")?;
            if messages == 0 {
                known.push(gained);
                continue;
            }
            if room < messages {
                self.groups.push_back(Group::default());
                room = GROUP;
            }
            room -= messages;
            self.groups.back_mut().into_iter().for_each(|group| group.lanes.push(gained.clone()));
        }
        Ok((known, settled))
    }

    /// Reads for so long, and at least one page. Returns the lanes of which everything is known now.
    pub async fn read(
        &mut self,
        pool: &Pool,
        routes: &[Route],
        within: Duration,
    ) -> Result<Vec<Gained>, StoreError> {
        let (begun, mut known) = (Instant::now(), Vec::new());
        while let Some(group) = self.groups.front_mut() {
            if group.read_page(pool, routes).await? {
                known.append(&mut group.lanes);
                self.groups.pop_front();
            }
            if begun.elapsed() >= within {
                break;
            }
        }
        Ok(known)
    }
}

/// Lanes that are read together, in the order of their numbers.
#[derive(Default)]
struct Group {
    lanes: Vec<Gained>,
    step: Step,
}

/// How far a group was read. What is still to be done begins behind this place.
enum Step {
    /// Messages find the sinks that routes name now.
    Routes { lane: i16, id: i64 },
    /// Keys are brought in order, and learned.
    Keys { lane: i16, sink: String, key: i64, id: i64 },
    /// What lies beyond a cursor is learned.
    Beyond { lane: i16, id: i64 },
}

impl Default for Step {
    fn default() -> Self {
        Self::Routes { lane: 0, id: 0 }
    }
}

impl Group {
    /// Reads the next page. Returns whether it was the last one.
    async fn read_page(&mut self, pool: &Pool, routes: &[Route]) -> Result<bool, StoreError> {
        let next = match &self.step {
            Step::Routes { lane, id } => Some(self.reroute(pool, routes, *lane, *id).await?),
            Step::Keys { lane, sink, key, id } => {
                let (rows, next) = self.keys(pool, *lane, sink, *key, *id).await?;
                self.hold(&rows)?;
                Some(next)
            }
            Step::Beyond { lane, id } => {
                let rows = self.beyond(pool, *lane, *id).await?;
                self.skip(&rows)?
            }
        };
        if let Some(next) = next {
            self.step = next;
            return Ok(false);
        }
        Ok(true)
    }

    fn numbers(&self) -> Vec<i16> {
        numbers(self.lanes.iter().map(|it| it.lease.lane))
    }

    async fn reroute(
        &self,
        pool: &Pool,
        routes: &[Route],
        lane: i16,
        id: i64,
    ) -> Result<Step, StoreError> {
        let regexes: Vec<String> = routes.iter().map(Route::regex).collect();
        let sinks: Vec<&str> = routes.iter().map(|route| route.sink.as_str()).collect();
        let params = [
            (&self.numbers() as _, Type::INT2_ARRAY),
            (&regexes as _, Type::TEXT_ARRAY),
            (&sinks as _, Type::TEXT_ARRAY),
            (&PAGE as _, Type::INT8),
            (&lane as _, Type::INT2),
            (&id as _, Type::INT8),
        ];
        let sql = include_str!("../sql/outbox/reroute_page.sql");
        let rows = pool.call(pool.leased(OPERATION), sql, &params).await?;
        let place = rows.first().ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))?;
        Ok(match get(OPERATION, place, "lane")? {
            Some(lane) => Step::Routes { lane, id: get(OPERATION, place, "id")? },
            None => Step::Keys { lane: 0, sink: String::new(), key: i64::MIN, id: 0 },
        })
    }

    /// Returns keys, and what comes next.
    async fn keys(
        &self,
        pool: &Pool,
        lane: i16,
        sink: &str,
        key: i64,
        id: i64,
    ) -> Result<(Vec<Row>, Step), StoreError> {
        let params = [
            (&self.numbers() as _, Type::INT2_ARRAY),
            (&PAGE as _, Type::INT8),
            (&lane as _, Type::INT2),
            (&sink as _, Type::TEXT),
            (&key as _, Type::INT8),
            (&id as _, Type::INT8),
        ];
        let sql = include_str!("../sql/outbox/keys_page.sql");
        let mut rows = pool.call(pool.leased(OPERATION), sql, &params).await?;
        let place = rows.pop().ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))?;
        let next = match get(OPERATION, &place, "lane")? {
            Some(lane) => Step::Keys {
                lane,
                sink: get(OPERATION, &place, "sink")?,
                key: get(OPERATION, &place, "key_hash")?,
                id: get(OPERATION, &place, "id")?,
            },
            None => Step::Beyond { lane: 0, id: 0 },
        };
        Ok((rows, next))
    }

    async fn beyond(&self, pool: &Pool, lane: i16, id: i64) -> Result<Vec<Row>, StoreError> {
        let params = [
            (&self.numbers() as _, Type::INT2_ARRAY),
            (&PAGE as _, Type::INT8),
            (&lane as _, Type::INT2),
            (&id as _, Type::INT8),
        ];
        let sql = include_str!("../sql/outbox/beyond_page.sql");
        pool.query(pool.leased(OPERATION), sql, &params).await
    }

    fn hold(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            let (lane, sink) = (lane(get(OPERATION, row, "lane")?), get(OPERATION, row, "sink")?);
            let key = HeldKey { lane, sink, key: KeyHash(get(OPERATION, row, "key_hash")?) };
            self.gained(lane).into_iter().for_each(|gained| gained.held.push(key.clone()));
        }
        Ok(())
    }

    /// Returns where the next page begins, if there is one.
    fn skip(&mut self, rows: &[Row]) -> Result<Option<Step>, StoreError> {
        let mut last = None;
        for row in rows {
            let (number, id) = (get(OPERATION, row, "lane")?, get(OPERATION, row, "id")?);
            self.gained(lane(number)).into_iter().for_each(|it| it.aside.push(Position(id)));
            last = Some(Step::Beyond { lane: number, id });
        }
        Ok(last.filter(|_| rows.len() as i64 == PAGE))
    }

    fn gained(&mut self, lane: Lane) -> Option<&mut Gained> {
        self.lanes.iter_mut().find(|gained| gained.lease.lane == lane)
    }
}

fn lane(number: i16) -> Lane {
    Lane(number.unsigned_abs())
}
