//! Reads lanes and what is due, in one statement.

use super::horizon::{Asked, Horizon, Seen};
use crate::{Postgres, decode::get, error::corrupt};
use std::{collections::HashMap, time::Duration};
use tidegate_core::{
    Headers, Message, MessageId, StoreError,
    limits::MAX_BEHIND,
    outbox::{self, Claim, ClaimRequest, Lane, Origin, Reader, Topics},
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "claim messages";

/// A window of ids may be so many times longer than the number of messages that are wanted.
const SPARSE: i64 = 256;

/// What is remembered from one claim to the next.
#[derive(Default)]
pub(super) struct Reading {
    horizon: Horizon,
    /// By the name of a reader: how many ids it looks at. Between its own messages are those of other
    /// lanes and topics.
    spans: HashMap<String, i64>,
}

impl Reading {
    fn span(&self, reader: &Reader) -> i64 {
        let most = reader.most as i64;
        self.spans.get(&reader.name).map_or(most, |span| (*span).clamp(most, most * SPARSE))
    }

    /// Looks at more ids if it found few messages among them, and at less if they were too many.
    fn adapt(&mut self, reader: &Reader, found: usize, cut: bool, whole: bool) {
        let span = self.span(reader);
        let next = match (cut, whole && found < reader.most / 2) {
            (true, _) => span / 2,
            (false, true) => span * 2,
            (false, false) => span,
        };
        self.spans.insert(reader.name.clone(), next);
    }
}

impl Postgres {
    pub(super) async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let name = self.outbox_name().await?;
        let (asked, spans) = {
            let reading = self.memo.reading();
            let spans = request.readers.iter().map(|reader| reading.span(reader)).collect();
            (reading.horizon.ask(), spans)
        };
        let rows = self.send_claim(request, &asked, &spans).await?;
        let mut answer = Answer::new(request.readers.len());
        for row in &rows {
            answer.add(name, row)?;
        }
        let seen = answer.seen.ok_or_else(|| corrupt(OPERATION, "the answer has no head"))?;
        let mut reading = self.memo.reading();
        reading.horizon.learn(&asked, seen);
        for (n, reader) in request.readers.iter().enumerate() {
            let got = &mut answer.claim.readings[n];
            got.messages.sort_unstable_by_key(|message| message.id);
            got.more = got.read_to < answer.horizon;
            // A limit cuts at a message; the end of a window is where it was meant to be.
            let cut = got.messages.last().is_some_and(|last| last.id.0 == got.read_to && got.more);
            reading.adapt(reader, got.messages.len(), cut, got.more);
        }
        answer.claim.held_back = reading.horizon.is_behind();
        answer.claim.due.sort_unstable_by_key(|message| message.id);
        Ok(answer.claim)
    }

    async fn send_claim(
        &self,
        request: &ClaimRequest,
        asked: &Asked,
        spans: &Vec<i64>,
    ) -> Result<Vec<Row>, StoreError> {
        let readers = &request.readers;
        let numbers: Vec<i32> = (0..readers.len() as i32).collect();
        let takes: Vec<Option<String>> =
            readers.iter().map(|it| it.takes.as_ref().and_then(|it| Topics::regex([it]))).collect();
        let leaves: Vec<Option<String>> =
            readers.iter().map(|reader| Topics::regex(&reader.leaves)).collect();
        let most: Vec<i64> = readers.iter().map(|reader| reader.most as i64).collect();
        let places = || {
            readers.iter().zip(&numbers).flat_map(|(it, n)| it.places.iter().map(move |p| (n, p)))
        };
        let place_reader: Vec<i32> = places().map(|(n, _)| *n).collect();
        let place_lane: Vec<i16> = places().map(|(_, place)| place.lane.0 as i16).collect();
        let place_after: Vec<i64> = places().map(|(_, place)| place.after).collect();
        let lanes: Vec<i16> = request.lanes.iter().map(|lane| lane.0 as i16).collect();
        let under_way: Vec<i64> = request.under_way.iter().map(|id| id.0).collect();
        let sql = include_str!("../sql/outbox/claim.sql");
        self.pool
            .query(
                OPERATION,
                sql,
                &[
                    (&numbers, Type::INT4_ARRAY),
                    (&takes, Type::TEXT_ARRAY),
                    (&leaves, Type::TEXT_ARRAY),
                    (spans, Type::INT8_ARRAY),
                    (&most, Type::INT8_ARRAY),
                    (&place_reader, Type::INT4_ARRAY),
                    (&place_lane, Type::INT2_ARRAY),
                    (&place_after, Type::INT8_ARRAY),
                    (&asked.ids, Type::INT8_ARRAY),
                    (&asked.below, Type::INT8_ARRAY),
                    (&lanes, Type::INT2_ARRAY),
                    (&under_way, Type::INT8_ARRAY),
                    (&(request.most_due as i64), Type::INT8),
                    (&(request.most_bytes as i64), Type::INT8),
                    (&(MAX_BEHIND as i64), Type::INT8),
                    (&asked.marked, Type::INT8),
                ],
            )
            .await
    }
}

/// What the rows of an answer say.
struct Answer {
    claim: Claim,
    horizon: i64,
    seen: Option<Seen>,
}

impl Answer {
    fn new(readers: usize) -> Self {
        let readings = (0..readers).map(|_| outbox::Reading::default()).collect();
        Self { claim: Claim { readings, ..Claim::default() }, horizon: 0, seen: None }
    }

    fn add(&mut self, name: &str, row: &Row) -> Result<(), StoreError> {
        match get(OPERATION, row, "kind")? {
            "seen" => {
                let number = |column| get::<i64>(OPERATION, row, column);
                let own: Option<i64> = get(OPERATION, row, "own")?;
                self.seen = Some(Seen { xmin: number("xmin")?, drawn: number("last_id")?, own });
                self.horizon = number("id")?;
                let seconds: Option<f64> = get(OPERATION, row, "next_due_seconds")?;
                self.claim.next_due = seconds.map(positive);
            }
            "window" => self.reading(row)?.read_to = get(OPERATION, row, "id")?,
            "lane" => {
                let seconds: Option<f64> = get(OPERATION, row, "due_seconds")?;
                let origin = Origin::Lane { due_in: seconds.map(positive) };
                let message = message(name, row, origin)?;
                self.reading(row)?.messages.push(message);
            }
            _ => {
                let attempts: i32 = get(OPERATION, row, "attempts")?;
                let sink = get(OPERATION, row, "sink")?;
                let origin = Origin::Aside { attempts: attempts.unsigned_abs(), sink };
                self.claim.due.push(message(name, row, origin)?);
            }
        }
        Ok(())
    }

    fn reading(&mut self, row: &Row) -> Result<&mut outbox::Reading, StoreError> {
        let n: i32 = get(OPERATION, row, "n")?;
        let reading = self.claim.readings.get_mut(n.unsigned_abs() as usize);
        reading.ok_or_else(|| corrupt(OPERATION, "the answer is for somebody else"))
    }
}

fn positive(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// The message in a row that has all its columns.
pub(super) fn message(name: &str, row: &Row, origin: Origin) -> Result<Message, StoreError> {
    let id: i64 = get(OPERATION, row, "id")?;
    let headers: Option<&str> = get(OPERATION, row, "headers")?;
    let unreadable = |_| corrupt(OPERATION, format!("the headers of message {id} are damaged"));
    let headers = headers.map(serde_json::from_str).transpose().map_err(unreadable)?;
    let payload: Option<&[u8]> = get(OPERATION, row, "payload")?;
    let lane: i16 = get(OPERATION, row, "lane")?;
    Ok(Message {
        id: MessageId(id),
        name: format!("{name}-{id}"),
        lane: Lane(lane.unsigned_abs()),
        topic: get(OPERATION, row, "topic")?,
        key: get(OPERATION, row, "key")?,
        headers: headers.unwrap_or_else(Headers::new),
        payload: payload.unwrap_or_default().to_vec(),
        published_ms: get::<Option<i64>>(OPERATION, row, "published_ms")?.unwrap_or(0),
        origin,
    })
}
