//! Reads pending rows and what is due, in one statement.

use super::{
    Adopted,
    encoding::Texts,
    front::Place,
    message::Found,
    rows::{Poison, ReadRow, Rows, lane},
};
use crate::{
    decode::{get, stuck_state},
    error::corrupt,
};
use std::{collections::BTreeSet, time::Duration};
use tidegate_core::{
    Message, Position, StoreError,
    limits::MAX_BEHIND,
    outbox::{
        Claim, ClaimRequest, Epoch, KeyHash, Lane, Origin, Reading, Refused, StuckState, Topics,
    },
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "claim messages";

impl Adopted {
    pub(super) async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        self.look_around().await;
        let (fence, in_memory, under_way, from) = {
            let rows = self.rows();
            let under_way = request.under_way.iter().copied().chain(rows.aside());
            let reads = !request.readers.is_empty();
            let in_memory = if reads { rows.row_keys() } else { Vec::new() };
            let from = From { place: rows.front.place().cloned(), late: rows.front.late() };
            (rows.fence(), in_memory, under_way.map(|id| id.0).collect::<Vec<i64>>(), from)
        };
        let answer = self.send_claim(request, &in_memory, &under_way, &from).await?;
        let texts = self.texts(&answer).await?;
        let answer = Answer::read(self, &texts, request.readers.len(), &answer)?;
        if answer.epoch.as_ref() != Some(&request.epoch) {
            return Err(StoreError::went_back(OPERATION));
        }
        let mut rows = self.rows();
        // Under another lease these rows may be in memory already: they are read again.
        match rows.fence() == fence {
            true => Ok(answer.give_ids(&mut rows, request)),
            false => Ok(Claim {
                readings: request.readers.iter().map(|_| Reading::default()).collect(),
                ..Claim::default()
            }),
        }
    }

    async fn send_claim(
        &self,
        request: &ClaimRequest,
        in_memory: &Vec<String>,
        under_way: &Vec<i64>,
        from: &From,
    ) -> Result<Vec<Row>, StoreError> {
        let place = from.place.as_ref();
        let readers = &request.readers;
        let numbers: Vec<i32> = (0..readers.len() as i32).collect();
        let takes: Vec<Option<String>> =
            readers.iter().map(|it| it.takes.as_ref().map(Topics::regex)).collect();
        let leaves: Vec<Option<String>> =
            readers.iter().map(|reader| Topics::regex_of_any(&reader.leaves)).collect();
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
                    (in_memory, Type::TEXT_ARRAY),
                    (under_way, Type::INT8_ARRAY),
                    (&(request.most_due as i64), Type::INT8),
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
    /// For each reader, its rows with their places.
    readings: Vec<Slice>,
    due: Vec<Due>,
    /// What was set aside and is left out by the mapping's filter now.
    unchosen: Vec<Position>,
    next_due: Option<Duration>,
    epoch: Option<Epoch>,
}

/// Rows with their places, and how many there are within the limit on messages.
type Slice = (Vec<(i64, Found)>, usize);

struct Due {
    id: Position,
    attempts: u32,
    sink: String,
    key: Option<KeyHash>,
    waited_for: StuckState,
    /// `None` if the row is not pending any more.
    found: Option<Found>,
}

impl Answer {
    fn read(
        adopted: &Adopted,
        texts: &Texts<'_>,
        readers: usize,
        rows: &[Row],
    ) -> Result<Self, StoreError> {
        let readings = (0..readers).map(|_| Default::default()).collect();
        let (due, unchosen) = Default::default();
        let mut answer = Self { readings, due, unchosen, next_due: None, epoch: None };
        for row in rows {
            answer.add(adopted, texts, row)?;
        }
        answer.readings.iter_mut().for_each(|(rows, _)| rows.sort_by_key(|(place, _)| *place));
        answer.due.sort_by_key(|due| due.id);
        Ok(answer)
    }

    fn add(&mut self, adopted: &Adopted, texts: &Texts<'_>, row: &Row) -> Result<(), StoreError> {
        match get(OPERATION, row, "kind")? {
            "next" => {
                let seconds: Option<f64> = get(OPERATION, row, "next_due_seconds")?;
                self.next_due = seconds.map(positive);
                self.epoch = get::<Option<String>>(OPERATION, row, "epoch")?.map(Epoch);
            }
            kind @ ("lane" | "late") => {
                let n: i32 = get(OPERATION, row, "n")?;
                let reading = self.readings.get_mut(n.unsigned_abs() as usize);
                let reading =
                    reading.ok_or_else(|| corrupt(OPERATION, "the answer is for somebody else"))?;
                let found = Found::read(&adopted.plan, texts, row)?;
                reading.0.push((get(OPERATION, row, "k")?, found));
                if kind == "lane" {
                    reading.1 = get::<i64>(OPERATION, row, "found")?.unsigned_abs() as usize;
                }
            }
            "unchosen" => self.unchosen.push(Position(get(OPERATION, row, "id")?)),
            _ => self.due.push(due(adopted, texts, row)?),
        }
        Ok(())
    }

    /// Messages get their ids in the order in which they were read. Lines that lag come first, so that
    /// one with more to read is behind the rest.
    fn give_ids(self, rows: &mut Rows, request: &ClaimRequest) -> Claim {
        let mut refused = Vec::new();
        let (due, mut news) = take_due(rows, self.due, &mut refused);
        news |= !self.unchosen.is_empty();
        self.unchosen.into_iter().for_each(|id| rows.add_unchosen(id));
        let mut readings: Vec<(usize, Slice)> = self.readings.into_iter().enumerate().collect();
        readings.sort_by_key(|(n, _)| request.readers[*n].takes.is_none());
        let mut given: Vec<Reading> = request.readers.iter().map(|_| Reading::default()).collect();
        for (n, (found, all)) in readings {
            let places = request.readers[n].places.iter().map(|place| place.lane).collect();
            let more = all > found.iter().filter(|(place, _)| *place > 0).count();
            found.iter().for_each(|(_, found)| rows.front.forget_late(&found.row_key));
            let messages = take_in(rows, found, &places, &mut refused);
            given[n] = Reading { messages, read_to: rows.last_id(), more };
        }
        // What moves on is settled, and a line that has more to read has not caught up.
        if news || given.iter().any(|reading| reading.more) {
            rows.next_id();
        }
        let last = rows.last_id();
        given.iter_mut().filter(|it| !it.more).for_each(|reading| reading.read_to = last);
        Claim { readings: given, due, next_due: self.next_due, refused, ..Claim::default() }
    }
}

/// Returns messages, and whether there is something to settle that the relay does not know of.
fn take_due(rows: &mut Rows, due: Vec<Due>, refused: &mut Vec<Refused>) -> (Vec<Message>, bool) {
    let mut messages = Vec::new();
    let mut news = false;
    for Due { id, attempts, sink, key, waited_for, found } in due {
        match found {
            None => rows.add_vanished(id),
            Some(found) if found.problem.is_some() => {
                let (topic, reason) = (found.topic().to_owned(), found.problem.unwrap_or_default());
                refused.push(Refused { id: id.into(), topic, reason: reason.clone() });
                // The side table has its row and its topic.
                let (row_key, topic, attempts) = (None, String::new(), attempts + 1);
                rows.add_poison(id, Poison { row_key, topic, key, sink, attempts, reason });
            }
            Some(found) => {
                let origin = Origin::Aside { attempts, sink, waited_for };
                messages.push(found.message(id, origin));
                continue;
            }
        }
        news = true;
    }
    (messages, news)
}

/// Remembers rows and makes messages of them. Rows that are no messages wait to be set aside.
fn take_in(
    rows: &mut Rows,
    found: Vec<(i64, Found)>,
    places: &BTreeSet<Lane>,
    refused: &mut Vec<Refused>,
) -> Vec<Message> {
    let mut messages = Vec::new();
    for (_, found) in found {
        let id = rows.next_id();
        let (lane, topic) = (lane(found.key(), id), found.topic().to_owned());
        if !places.contains(&lane) {
            continue;
        }
        if let Some(reason) = found.problem {
            refused.push(Refused { id: id.into(), topic: topic.clone(), reason: reason.clone() });
            let (key, row_key) = (None, Some(found.row_key));
            let sink = String::new();
            rows.add_poison(id, Poison { row_key, topic, key, sink, attempts: 1, reason });
            continue;
        }
        rows.add(id, ReadRow { row_key: found.row_key.clone(), lane, topic });
        messages.push(found.message(id, Origin::Lane { due_in: None }));
    }
    messages
}

fn due(adopted: &Adopted, texts: &Texts<'_>, row: &Row) -> Result<Due, StoreError> {
    let row_key: Option<&str> = get(OPERATION, row, "row_key")?;
    let key: Option<i64> = get(OPERATION, row, "key_hash")?;
    Ok(Due {
        id: Position(get(OPERATION, row, "id")?),
        attempts: get::<i32>(OPERATION, row, "attempts")?.unsigned_abs(),
        sink: get(OPERATION, row, "sink")?,
        key: key.map(KeyHash),
        waited_for: stuck_state(OPERATION, row)?,
        found: row_key.map(|_| Found::read(&adopted.plan, texts, row)).transpose()?,
    })
}

fn positive(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
