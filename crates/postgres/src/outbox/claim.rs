//! Reads lanes, and what was set aside and is due, in one statement.

use super::{aside::Looks, retiring::Segments};
use crate::{
    Postgres,
    decode::{get, stuck_state},
    error::corrupt,
};
use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tidegate_core::{
    Headers, Kind, Message, MessageId, Position, StoreError,
    limits::{MAX_BEHIND, MAX_PAYLOAD_BYTES},
    outbox::{
        self, Claim, ClaimRequest, Epoch, LANES, Lane, Origin, Reader, Topics,
        horizon::{Asked, Horizon, Seen},
    },
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "claim messages";

/// So many times what was asked for is too much: the window was far too long.
const TOO_MUCH: usize = 4;

/// A window of ids may be so many times longer than the number of messages that are wanted.
const SPARSEST: f64 = 256.0;

/// What is remembered from one claim to the next, within an epoch.
#[derive(Default)]
pub(super) struct Reading {
    epoch: Epoch,
    horizon: Horizon,
    aside: Looks,
    /// Segments that were about to be truncated at the last claim.
    retiring: Segments,
    /// By the name of a reader: at how many ids it looks for each message that it wants. Between its own
    /// messages are those of other lanes and topics.
    sparse: HashMap<String, f64>,
}

/// What a claim asks beside what was requested.
struct Asking {
    horizon: Asked,
    /// How many ids each reader looks at.
    spans: Vec<i64>,
    /// From when on to look at what was set aside.
    since: Option<SystemTime>,
    /// From which segments nothing is read.
    left_out: Segments,
    begun: Instant,
}

impl Reading {
    fn ask(&mut self, request: &ClaimRequest) -> Asking {
        let begun = Instant::now();
        if self.epoch != request.epoch {
            *self = Self { epoch: request.epoch.clone(), ..Self::default() };
        }
        Asking {
            horizon: self.horizon.ask(),
            spans: request.readers.iter().map(|reader| self.span(reader)).collect(),
            since: self.aside.since(request, begun),
            left_out: self.retiring,
            begun,
        }
    }

    fn span(&self, reader: &Reader) -> i64 {
        (self.sparse(reader) * reader.most as f64).max(1.0) as i64
    }

    fn sparse(&self, reader: &Reader) -> f64 {
        self.sparse.get(&reader.name).copied().unwrap_or(1.0)
    }

    /// Looks at more ids if it found few messages among them, and at less if they were too many.
    fn adapt(&mut self, reader: &Reader, by: f64) {
        let one = 1.0 / reader.most.max(1) as f64;
        let sparse = (self.sparse(reader) * by).clamp(one, SPARSEST);
        self.sparse.insert(reader.name.clone(), sparse);
    }
}

impl Postgres {
    pub(super) async fn claim(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        let name = self.outbox_name().await?;
        loop {
            match self.try_claim(name, request).await {
                Ok(None) => {}
                Ok(Some(claim)) => return Ok(claim),
                Err(error) if error.kind() == Kind::IdsRestarted => {
                    super::note_restarted_ids(&self.pool).await?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads once. `None` if the windows turned out to hold far more than was asked for, and they are shorter then;
    /// or if a segment was left out that has to be read, and it is not left out then.
    async fn try_claim(
        &self,
        name: &str,
        request: &ClaimRequest,
    ) -> Result<Option<Claim>, StoreError> {
        let asking = self.memo.reading().ask(request);
        let mut answer = Answer::new(request);
        let sent = self.send_claim(request, &asking, |row| answer.add(name, row)).await;
        let mut reading = self.memo.reading();
        let is_deadline = |error: &StoreError| error.kind() == Kind::Deadline;
        if matches!(sent, Ok(false)) || sent.as_ref().is_err_and(is_deadline) {
            request.readers.iter().for_each(|reader| reading.adapt(reader, 0.125));
        }
        if !sent? {
            return Ok(None);
        }
        let headless = || corrupt(OPERATION, "the answer has no head");
        let Head { epoch, seen, at, retiring } = answer.head.ok_or_else(headless)?;
        reading.retiring = retiring;
        if !retiring.contains(asking.left_out) {
            return Ok(None);
        }
        let is_known = epoch.as_ref() == Some(&request.epoch);
        if !is_known || reading.epoch == request.epoch && reading.horizon.is_set_back(seen.drawn) {
            *reading = Reading::default();
            return Err(StoreError::went_back(OPERATION));
        }
        if has_restarted(request, seen.drawn) {
            return Err(super::ids_restarted(OPERATION));
        }
        if reading.epoch != request.epoch {
            // Somebody in this process knows a later one already.
            return Err(StoreError::went_back(OPERATION));
        }
        reading.horizon.learn(&asking.horizon, &seen);
        if asking.since.is_none() {
            reading.aside.learn(request, asking.begun, at, answer.late);
        }
        for (reader, got) in request.readers.iter().zip(&mut answer.claim.readings) {
            let (bytes, cut) = sort_and_cut(got, reader.most, request.most_bytes);
            got.more = got.read_to < answer.horizon;
            let few = got.messages.len() < reader.most / 2 && bytes < request.most_bytes / 2;
            match (got.more, cut, few) {
                (true, true, _) => reading.adapt(reader, 0.75),
                (true, false, true) => reading.adapt(reader, 2.0),
                _ => {}
            }
        }
        answer.claim.due.sort_unstable_by_key(|message| message.position);
        answer.claim.held_back = reading.horizon.is_behind();
        Ok(Some(answer.claim))
    }

    async fn send_claim(
        &self,
        request: &ClaimRequest,
        asking: &Asking,
        take: impl FnMut(Row) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        let readers = &request.readers;
        let numbers: Vec<i32> = (0..readers.len() as i32).collect();
        let takes: Vec<Option<String>> =
            readers.iter().map(|it| it.takes.as_ref().map(Topics::regex)).collect();
        let leaves: Vec<Option<String>> =
            readers.iter().map(|reader| Topics::regex_of_any(&reader.leaves)).collect();
        let first =
            |it: &Reader| it.places.iter().map(|place| place.after).min().unwrap_or(i64::MAX);
        let after: Vec<i64> = readers.iter().map(first).collect();
        let mut places: Vec<Option<i64>> = vec![None; readers.len() * usize::from(LANES)];
        for (reader, places) in readers.iter().zip(places.chunks_mut(LANES.into())) {
            for place in &reader.places {
                places[usize::from(place.lane.0)] = Some(place.after);
            }
        }
        let lanes: Vec<i16> = request.lanes.iter().map(|lane| lane.0 as i16).collect();
        let under_way: Vec<i64> = request.under_way.iter().map(|id| id.0).collect();
        self.pool
            .read(
                self.pool.leased(OPERATION),
                asking.left_out.claim_sql(),
                &[
                    (&numbers, Type::INT4_ARRAY),
                    (&takes, Type::TEXT_ARRAY),
                    (&leaves, Type::TEXT_ARRAY),
                    (&asking.spans, Type::INT8_ARRAY),
                    (&after, Type::INT8_ARRAY),
                    (&places, Type::INT8_ARRAY),
                    (&asking.horizon.marks, Type::INT8_ARRAY),
                    (&asking.horizon.writers, Type::INT8_ARRAY),
                    (&asking.horizon.marked, Type::INT8),
                    (&lanes, Type::INT2_ARRAY),
                    (&under_way, Type::INT8_ARRAY),
                    (&request.closed, Type::TEXT_ARRAY),
                    (&(request.most_due as i64), Type::INT8),
                    (&(MAX_BEHIND as i64), Type::INT8),
                    (&(request.most_bytes as i64), Type::INT8),
                    (&asking.since, Type::TIMESTAMPTZ),
                    (&asking.spans.iter().max().copied().unwrap_or_default(), Type::INT8),
                    (&asking.horizon.holds, Type::INT8_ARRAY),
                    (&asking.left_out.numbers(), Type::INT2_ARRAY),
                ],
                take,
            )
            .await
    }
}

/// Whether the last id that was drawn is one that a lane has passed: new messages would never be read.
fn has_restarted(request: &ClaimRequest, drawn: i64) -> bool {
    let places = request.readers.iter().flat_map(|reader| &reader.places);
    places.map(|place| place.after).max().is_some_and(|after| after > drawn)
}

/// Puts what was read in order, and cuts it to what was asked for. Returns its bytes, and whether it
/// was cut.
fn sort_and_cut(reading: &mut outbox::Reading, most: usize, most_bytes: usize) -> (usize, bool) {
    reading.messages.sort_unstable_by_key(|message| message.position);
    let mut bytes = 0;
    let fits = reading.messages.iter().take(most).take_while(|message| {
        let before = bytes;
        bytes += message.bytes();
        before == 0 || bytes <= most_bytes
    });
    let fit = fits.count();
    let cut = fit < reading.messages.len();
    if cut {
        reading.messages.truncate(fit);
        reading.read_to = reading.messages.last().map_or(0, |last| last.position.0);
    }
    (bytes, cut)
}

/// What the rows of an answer say.
struct Answer {
    claim: Claim,
    horizon: i64,
    head: Option<Head>,
    /// For how long something that was set aside has been due.
    late: Duration,
    /// Messages and bytes that may still come before it is too much.
    left: (usize, usize),
}

/// What a statement could see.
struct Head {
    /// None if one has to begin.
    epoch: Option<Epoch>,
    seen: Seen,
    /// When, by the store's clock.
    at: SystemTime,
    /// After that.
    retiring: Segments,
}

impl Answer {
    fn new(request: &ClaimRequest) -> Self {
        let readings = request.readers.iter().map(|_| outbox::Reading::default()).collect();
        let most: usize = request.readers.iter().map(|reader| reader.most).sum();
        let bytes = request.most_bytes + MAX_PAYLOAD_BYTES;
        Self {
            claim: Claim { readings, ..Claim::default() },
            horizon: 0,
            head: None,
            late: Duration::ZERO,
            left: (TOO_MUCH * most.max(1), TOO_MUCH * request.readers.len() * bytes),
        }
    }

    /// Returns whether more can be taken.
    fn add(&mut self, name: &str, row: Row) -> Result<bool, StoreError> {
        let row = &row;
        match get(OPERATION, row, "kind")? {
            "seen" => {
                let seen = Seen {
                    decided: get(OPERATION, row, "id")?,
                    open: get(OPERATION, row, "open_writers")?,
                    drawn: get(OPERATION, row, "last_id")?,
                    writers: get(OPERATION, row, "writers")?,
                };
                self.horizon = seen.decided;
                let epoch = get::<Option<String>>(OPERATION, row, "epoch")?.map(Epoch);
                let retiring: Vec<i16> = get(OPERATION, row, "retiring")?;
                let (at, retiring) = (get(OPERATION, row, "published_at")?, retiring.into());
                self.head = Some(Head { epoch, seen, at, retiring });
            }
            "window" => self.reading(row)?.read_to = get(OPERATION, row, "id")?,
            "due" => match get(OPERATION, row, "due_seconds")? {
                Some(seconds) => {
                    self.claim.next_due = Some(positive(seconds));
                    self.late = positive(-seconds);
                }
                None => self.claim.due.push(message(name, row, aside(row)?)?),
            },
            _ => {
                let seconds: Option<f64> = get(OPERATION, row, "due_seconds")?;
                let origin = Origin::Lane { due_in: seconds.map(positive) };
                let message = message(name, row, origin)?;
                let (messages, bytes) = self.left;
                let reading = self.reading(row)?;
                // A window of one id must do, whatever is there.
                let bytes = match bytes.checked_sub(message.bytes()) {
                    None if reading.messages.is_empty() => Some(0),
                    left => left,
                };
                let Some(left) = messages.checked_sub(1).zip(bytes) else { return Ok(false) };
                reading.messages.push(message);
                self.left = left;
            }
        }
        Ok(true)
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

/// Where a message comes from that was set aside.
fn aside(row: &Row) -> Result<Origin, StoreError> {
    let attempts: i32 = get(OPERATION, row, "attempts")?;
    let (attempts, sink) = (attempts.unsigned_abs(), get(OPERATION, row, "sink")?);
    Ok(Origin::Aside { attempts, sink, waited_for: stuck_state(OPERATION, row)? })
}

/// The message in a row that has all its columns.
pub(super) fn message(name: &str, row: &Row, origin: Origin) -> Result<Message, StoreError> {
    let position = Position(get(OPERATION, row, "id")?);
    let id = MessageId::from(position);
    let headers: Option<&str> = get(OPERATION, row, "headers")?;
    // The functions refuse it; who writes to the table itself is not asked.
    let headers = headers.map(serde_json::from_str::<Headers>).transpose();
    let damage = headers.is_err().then(|| "its headers are no JSON object of strings".to_owned());
    let payload: Option<&[u8]> = get(OPERATION, row, "payload")?;
    let lane: i16 = get(OPERATION, row, "lane")?;
    let published: Option<SystemTime> = get(OPERATION, row, "published_at")?;
    let published = published.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Ok(Message {
        name: Message::name_of(name, published.as_micros(), &id),
        id,
        position,
        lane: Lane(lane.unsigned_abs()),
        topic: get(OPERATION, row, "topic")?,
        key: get(OPERATION, row, "key")?,
        headers: headers.ok().flatten().unwrap_or_default(),
        payload: payload.unwrap_or_default().to_vec(),
        published_ms: published.as_millis() as i64,
        origin,
        damage,
    })
}
