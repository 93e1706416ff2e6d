//! Reads pending rows and what is due, in one statement.

use super::{
    Adopted,
    encoding::Texts,
    front::Place,
    message::{Found, lane},
};
use crate::{
    decode::{get, stuck_state},
    error::corrupt,
};
use std::time::Duration;
use tidegate_core::{
    Message, Position, StoreError,
    limits::MAX_BEHIND,
    outbox::{
        Aside, ClaimRequest, Epoch, KeyHash, Lane, Origin, SetAside, Topics,
        by_state::{Pending, PendingReading, PendingRequest},
    },
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "claim messages";

impl Adopted {
    pub(super) async fn claim(&self, request: &PendingRequest) -> Result<Pending, StoreError> {
        self.look_around().await;
        let (fence, from) = {
            let front = self.front();
            let from = From { place: front.place().cloned(), late: front.late() };
            (front.fence(), from)
        };
        let PendingRequest { claim, known } = request;
        let reads = !claim.readers.is_empty();
        let known: Vec<&str> = known.iter().filter(|_| reads).map(|row| &**row).collect();
        let rows = self.send_claim(claim, known, &from).await?;
        let texts = self.texts(&rows).await?;
        let answer = Answer::read(self, &texts, claim.readers.len(), &rows)?;
        if answer.epoch.as_ref() != Some(&claim.epoch) {
            return Err(StoreError::went_back(OPERATION));
        }
        let mut front = self.front();
        if front.fence() == fence {
            let found = answer.readings.iter().flat_map(|reading| &reading.rows);
            found.for_each(|(_, found)| front.forget_late(&found.row_key));
        }
        let mut pending = answer.pending();
        pending.due.retain(|message| claim.lanes.contains(&message.lane));
        pending.next_due = pending.next_due.filter(|_| !claim.lanes.is_empty());
        Ok(pending)
    }

    async fn send_claim(
        &self,
        request: &ClaimRequest,
        known: Vec<&str>,
        from: &From,
    ) -> Result<Vec<Row>, StoreError> {
        let place = from.place.as_ref();
        let under_way: Vec<i64> = request.under_way.iter().map(|it| it.0).collect();
        let readers = &request.readers;
        let numbers: Vec<i32> = (0..readers.len() as i32).collect();
        let takes: Vec<Option<String>> =
            readers.iter().map(|it| it.takes.as_ref().map(Topics::regex)).collect();
        let leaves: Vec<Option<String>> =
            readers.iter().map(|reader| Topics::regex_of_any(&reader.leaves)).collect();
        let most_due = if request.lanes.is_empty() { 0 } else { request.most_due };
        let most: Vec<i64> = readers.iter().map(|reader| reader.most as i64).collect();
        self.pool
            .query(
                self.pool.leased(OPERATION),
                &self.statements.claim,
                &[
                    (&self.plan.table.adopted, Type::TEXT),
                    (&self.statements.values, Type::TEXT_ARRAY),
                    (&numbers, Type::INT4_ARRAY),
                    (&takes, Type::TEXT_ARRAY),
                    (&leaves, Type::TEXT_ARRAY),
                    (&most, Type::INT8_ARRAY),
                    (&known, Type::TEXT_ARRAY),
                    (&under_way, Type::INT8_ARRAY),
                    (&(most_due as i64), Type::INT8),
                    (&(request.most_bytes as i64), Type::INT8),
                    (&(MAX_BEHIND as i64), Type::INT8),
                    (&request.closed, Type::TEXT_ARRAY),
                    (&place.map(|place| &place.texts), Type::TEXT_ARRAY),
                    (&place.is_some_and(|place| place.after), Type::BOOL),
                    (&from.late, Type::TEXT_ARRAY),
                ],
            )
            .await
    }
}

/// From where on rows are read, and which besides.
struct From {
    place: Option<Place>,
    late: Vec<String>,
}

/// What the rows of an answer say.
struct Answer {
    /// One for each reader.
    readings: Vec<Slice>,
    /// Everything else.
    pending: Pending,
    epoch: Option<Epoch>,
}

/// What one reader got.
#[derive(Default)]
struct Slice {
    /// Rows with their places; those from behind the front come first.
    rows: Vec<(i64, Found)>,
    /// How many there are within the limit on messages.
    found: usize,
}

impl Answer {
    fn read(
        adopted: &Adopted,
        texts: &Texts<'_>,
        readers: usize,
        rows: &[Row],
    ) -> Result<Self, StoreError> {
        let readings = (0..readers).map(|_| Slice::default()).collect();
        let mut answer = Self { readings, pending: Pending::default(), epoch: None };
        for row in rows {
            answer.add(adopted, texts, row)?;
        }
        answer.readings.iter_mut().for_each(|slice| slice.rows.sort_by_key(|(place, _)| *place));
        answer.pending.due.sort_by_key(|due| due.position);
        Ok(answer)
    }

    fn add(&mut self, adopted: &Adopted, texts: &Texts<'_>, row: &Row) -> Result<(), StoreError> {
        match get(OPERATION, row, "kind")? {
            "next" => {
                let seconds: Option<f64> = get(OPERATION, row, "next_due_seconds")?;
                self.pending.next_due = seconds.map(positive);
                self.epoch = get::<Option<String>>(OPERATION, row, "epoch")?.map(Epoch);
            }
            kind @ ("lane" | "late") => {
                let n: i32 = get(OPERATION, row, "n")?;
                let slice = self.readings.get_mut(n.unsigned_abs() as usize);
                let slice =
                    slice.ok_or_else(|| corrupt(OPERATION, "the answer is for somebody else"))?;
                let found = Found::read(&adopted.plan, texts, row)?;
                slice.rows.push((get(OPERATION, row, "k")?, found));
                if kind == "lane" {
                    slice.found = get::<i64>(OPERATION, row, "found")?.unsigned_abs() as usize;
                }
            }
            "unchosen" => self.pending.set_aside.push(unchosen(row)?),
            _ => match get::<Option<&str>>(OPERATION, row, "row_key")? {
                Some(_) => self.pending.due.push(due(adopted, texts, row)?),
                None => {
                    let (lane, position, _) = known(row)?;
                    self.pending.gone.push((lane, position));
                }
            },
        }
        Ok(())
    }

    fn pending(self) -> Pending {
        let readings = self.readings.into_iter().map(Slice::reading).collect();
        Pending { readings, ..self.pending }
    }
}

impl Slice {
    fn reading(self) -> PendingReading {
        let more = self.found > self.rows.iter().filter(|(place, _)| *place > 0).count();
        let message = |(_, found): (i64, Found)| {
            let row = found.row_key.as_str().into();
            (row, found.message(Position::default(), Origin::Lane { due_in: None }))
        };
        PendingReading { messages: self.rows.into_iter().map(message).collect(), more }
    }
}

/// Lane, position and key of what was set aside. Keys are told apart by lanes, so it is in its key's.
fn known(row: &Row) -> Result<(Lane, Position, Option<KeyHash>), StoreError> {
    let position = Position(get(OPERATION, row, "id")?);
    let key = get::<Option<i64>>(OPERATION, row, "key_hash")?.map(KeyHash);
    Ok((lane(key.unwrap_or(KeyHash(position.0))), position, key))
}

/// What was set aside and is due. If its key cannot be read, it is where its key was.
fn due(adopted: &Adopted, texts: &Texts<'_>, row: &Row) -> Result<Message, StoreError> {
    let (lane, position, _) = known(row)?;
    let origin = Origin::Aside {
        attempts: get::<i32>(OPERATION, row, "attempts")?.unsigned_abs(),
        sink: get(OPERATION, row, "sink")?,
        waited_for: stuck_state(OPERATION, row)?,
    };
    let message = Found::read(&adopted.plan, texts, row)?.message(position, origin);
    Ok(if message.key.is_some() { message } else { Message { lane, ..message } })
}

/// What was set aside and the mapping's filter leaves out now: nobody takes it. The side table has its topic, and
/// whoever takes the table over looks at it again.
fn unchosen(row: &Row) -> Result<SetAside, StoreError> {
    let (lane, position, key) = known(row)?;
    let (topic, sink) = Default::default();
    Ok(SetAside { lane, position, topic, key, sink, aside: Aside::Unrouted })
}

fn positive(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
