//! Reads lanes, and what was set aside and is due. Nothing is written.

use super::{numbers, row, rows};
use crate::{
    errors::Failure,
    row::parsed,
    sql::{Millis, Sql, array},
};
use rusqlite::{Row, params};
use serde_json::json;
use std::{collections::HashMap, ops::ControlFlow};
use tidegate_core::{
    Message, Position,
    limits::MAX_BEHIND,
    outbox::{Claim, ClaimRequest, Lane, Origin, Reader, Reading, StuckState},
};

/// A reader looks at so many times more messages than it wants: between its own are those of other
/// lanes and topics.
const SPARSE: usize = 64;

pub(super) fn claim(sql: &Sql, request: &ClaimRequest) -> Result<Claim, Failure> {
    let _moment = sql.moment()?;
    let now = sql.now()?;
    let looking = Looking { sql, name: row::outbox_name(sql)?, now, most: request.most_bytes };
    let last = sql.row(include_str!("../sql/outbox/last_id.sql"), [], |row| row.get(0))?;
    let last = last.unwrap_or(0);
    let readings = request.readers.iter().map(|reader| looking.read(reader, last));
    Ok(Claim {
        readings: readings.collect::<Result<_, _>>()?,
        due: looking.due(request)?,
        next_due: looking.next_due(request)?.map(|due| due.since(now)),
        ..Claim::default()
    })
}

/// One look at the store.
struct Looking<'a> {
    sql: &'a Sql<'a>,
    name: String,
    now: Millis,
    /// Bytes of payload.
    most: usize,
}

impl Looking<'_> {
    /// `last` is the last id that was drawn.
    fn read(&self, reader: &Reader, last: i64) -> Result<Reading, Failure> {
        let Some(first) = self.first(reader)? else {
            return Ok(Reading { read_to: last, ..Reading::default() });
        };
        if reader.most == 0 {
            return Ok(Reading { read_to: first - 1, more: true, ..Reading::default() });
        }
        let mut window = Window::new(reader, self.most);
        let looks = reader.most.saturating_mul(SPARSE);
        let params = params![first, last, looks];
        let (mut seen, mut last_seen) = (0, first);
        let mut full = None;
        self.sql.each(include_str!("../sql/outbox/claim_scan.sql"), params, |row| {
            let found = Found::of(row)?;
            (seen, last_seen) = (seen + 1, found.id);
            Ok(match window.add(&found) {
                true => ControlFlow::Continue(()),
                false => {
                    full = Some(found.id - 1);
                    ControlFlow::Break(())
                }
            })
        })?;
        let (read_to, more) = match full {
            Some(before) => (before, true),
            None if seen == looks => (last_seen, last_seen < last),
            None => (last, false),
        };
        Ok(Reading { messages: self.messages(&window.ids)?, read_to, more })
    }

    /// The first message in the reader's lanes.
    fn first(&self, reader: &Reader) -> Result<Option<i64>, Failure> {
        let places = rows(reader.places.iter().map(|place| json!([place.lane.0, place.after])));
        let text = include_str!("../sql/outbox/claim_first.sql");
        Ok(self.sql.row(text, [places], |row| row.get(0))?.flatten())
    }

    /// In the order of their ids.
    fn messages(&self, ids: &[i64]) -> Result<Vec<Message>, Failure> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let text = include_str!("../sql/outbox/messages.sql");
        let read = |row: &Row<'_>| row::message(&self.name, row, self.now);
        Ok(self.sql.rows(text, [array(ids)], read)?)
    }

    fn due(&self, request: &ClaimRequest) -> Result<Vec<Message>, Failure> {
        let under_way = array(&request.under_way);
        let (lanes, closed) = (numbers(&request.lanes), json!(request.closed).to_string());
        let params = params![lanes, under_way, self.now.0, request.most_due, MAX_BEHIND, closed];
        let mut origins: HashMap<Position, Origin> = HashMap::new();
        let (mut ids, mut bytes) = (Vec::new(), 0);
        self.sql.each(include_str!("../sql/outbox/claim_due.sql"), params, |row| {
            let id = row.get("id")?;
            bytes += row.get::<_, usize>("bytes")?;
            if bytes > self.most && !ids.is_empty() {
                return Ok(ControlFlow::Break(()));
            }
            ids.push(id);
            let (attempts, sink) = (row.get("attempts")?, row.get("sink")?);
            let waited_for = parsed(row, "state", |word: String| StuckState::parse(&word))?;
            let origin = Origin::Aside { attempts, sink, waited_for };
            origins.insert(Position(id), origin);
            Ok(ControlFlow::Continue(()))
        })?;
        let mut messages = self.messages(&ids)?;
        for message in &mut messages {
            message.origin = origins.remove(&message.position).unwrap_or(message.origin.clone());
        }
        Ok(messages)
    }

    fn next_due(&self, request: &ClaimRequest) -> Result<Option<Millis>, Failure> {
        let (lanes, under_way) = (numbers(&request.lanes), array(&request.under_way));
        let params = params![lanes, under_way, json!(request.closed).to_string()];
        let text = include_str!("../sql/outbox/claim_next_due.sql");
        let due: Option<Option<i64>> = self.sql.row(text, params, |row| row.get(0))?;
        Ok(due.flatten().map(Millis))
    }
}

/// A message that a reader came across.
struct Found {
    id: i64,
    /// `None` if it is in no lane.
    lane: Option<Lane>,
    topic: String,
    bytes: usize,
}

impl Found {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (id, topic, bytes) = (row.get("id")?, row::topic(row)?, row.get("bytes")?);
        let lane = u16::try_from(row.get::<_, i64>("lane")?).ok().map(Lane);
        Ok(Self { id, lane, topic, bytes })
    }
}

/// What a reader has chosen so far.
struct Window<'a> {
    reader: &'a Reader,
    afters: HashMap<Lane, i64>,
    ids: Vec<i64>,
    bytes: usize,
    most_bytes: usize,
}

impl<'a> Window<'a> {
    fn new(reader: &'a Reader, most_bytes: usize) -> Self {
        let afters = reader.places.iter().map(|place| (place.lane, place.after)).collect();
        Self { reader, afters, ids: Vec::new(), bytes: 0, most_bytes }
    }

    /// Says whether it went on: not beyond a limit.
    fn add(&mut self, found: &Found) -> bool {
        let after = found.lane.and_then(|lane| self.afters.get(&lane));
        let behind = after.is_some_and(|after| found.id > *after);
        if !behind || !self.reader.wants(&found.topic) {
            return true;
        }
        let bytes = self.bytes + found.bytes;
        let full =
            self.ids.len() == self.reader.most || bytes > self.most_bytes && !self.ids.is_empty();
        if !full {
            self.bytes = bytes;
            self.ids.push(found.id);
        }
        !full
    }
}
