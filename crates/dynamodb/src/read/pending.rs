//! One look for messages: those that are outstanding, and those that were set aside and are due.

use super::{Seen, find::OPERATION, parse};
use crate::{
    DynamoDb,
    aside::{Part, Place},
    item::{Found, decode},
    ticks::Ticks,
};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};
use tidegate_core::{
    Message, StoreError,
    limits::MAX_BEHIND,
    outbox::{
        Lane, Origin, Position, Reader,
        by_state::{AsideRow, Pending, PendingReading, PendingRequest, Row},
    },
};

/// Messages that were set aside and are fetched at once.
const FETCHED: usize = MAX_BEHIND;

/// When it is looked again for a message whose record must go first.
const SOON: Duration = Duration::from_millis(50);

/// More than so many waiting messages are not held in memory: no more are read until some are done.
const MOST_WAITING: usize = 500_000;

impl DynamoDb {
    pub(crate) async fn pending(&self, request: &PendingRequest) -> Result<Pending, StoreError> {
        let (due, gone, next_due) = self.due(request).await?;
        let readers = &request.claim.readers;
        let mut pending = Pending {
            readings: readers.iter().map(|_| PendingReading::default()).collect(),
            due,
            gone,
            next_due,
            ..Pending::default()
        };
        if readers.is_empty() || self.book().len() > MOST_WAITING {
            return Ok(pending);
        }
        let mut harvest = self.find(request).await?;
        let found = harvest.seen.len();
        let (seen, still_aside) = self.take_back(harvest.seen, &mut pending.gone).await?;
        if !still_aside.is_empty() {
            pending.next_due = pending.next_due.into_iter().chain([SOON]).min();
        }
        let readings = &mut pending.readings;
        harvest.fates.left = give_out(seen, readers, request.claim.most_bytes, readings);
        harvest.fates.left.extend(still_aside);
        let now = (Ticks::now(), Instant::now());
        let mut finder = self.finder();
        finder.read(&harvest.shards, &harvest.fates, now.1);
        let given = readings.iter().flat_map(|reading| &reading.messages);
        finder.gave(given.map(|(row, message)| (row.clone(), message.lane)));
        finder.looked(found, self.address().page, now.1);
        for (reader, reading) in readers.iter().zip(readings) {
            reading.more |= finder.has_more(|topic| reader.wants(topic));
        }
        let wants = |topic: &str| readers.iter().any(|reader| reader.wants(topic));
        let next = harvest.next.into_iter().chain(finder.wait(wants, now));
        pending.next_due = pending.next_due.into_iter().chain(next).min();
        Ok(pending)
    }

    /// Somebody made messages outstanding again that were set aside: they are delivered as such, and their records
    /// go. Those of which this relay knows are gone first, because they may hold their keys; they and what follows them are
    /// returned by name, and read again afterwards.
    async fn take_back(
        &self,
        seen: Vec<Seen>,
        gone: &mut Vec<(Lane, Position)>,
    ) -> Result<(Vec<Seen>, HashSet<Row>), StoreError> {
        let (mut fresh, mut still_aside) = (Vec::new(), HashSet::new());
        let mut keys = HashSet::new();
        for it in seen {
            let key = &it.found.message.key;
            if key.as_ref().is_some_and(|key| keys.contains(key)) {
                still_aside.insert(it.row);
                continue;
            }
            let place = it.found.aside.as_deref().and_then(Place::of_mark);
            if let Some(place) = place {
                if self.book().get(place.position).is_some_and(|row| row.row == it.row) {
                    gone.push((place.lane, place.position));
                    keys.extend(key.clone());
                    still_aside.insert(it.row);
                    continue;
                }
                self.client.delete_record(OPERATION, place).await?;
            }
            self.sizes().note(&it.row, it.found.lane, it.found.bytes);
            fresh.push(it);
        }
        Ok((fresh, still_aside))
    }

    /// Messages that were set aside and are due, those that are gone, and when the next is due.
    async fn due(
        &self,
        request: &PendingRequest,
    ) -> Result<(Vec<Message>, Vec<(Lane, Position)>, Option<Duration>), StoreError> {
        let now = self.now();
        let (rows, next_due) = {
            let book = self.book();
            let due = book.due(&request.claim, now);
            let row = |position: Position| Some((position, book.get(position)?.clone()));
            let rows: Vec<(Position, AsideRow)> = due.into_iter().filter_map(row).collect();
            (rows, book.next_due(&request.claim, now))
        };
        let (mut due, mut gone, mut bytes) = (Vec::new(), Vec::new(), 0);
        'all: for rows in rows.chunks(FETCHED) {
            let id = |row: &AsideRow| parse(&row.row).map_or("", |(_, id)| id).to_owned();
            let ids: Vec<String> = rows.iter().map(|(_, row)| id(row)).collect();
            let mut items = self.client.get_all(OPERATION, &ids, None).await?;
            for (position, row) in rows {
                let found = items.remove(&id(row)).and_then(|item| decode(&item));
                match found.filter(|found| is_aside(found, row.lane, *position)) {
                    None => gone.push((row.lane, *position)),
                    Some(found) => {
                        self.sizes().note(&row.row, row.lane, found.bytes);
                        bytes += found.message.payload.len();
                        if bytes > request.claim.most_bytes && !due.is_empty() {
                            break 'all;
                        }
                        due.push(found.message(*position, origin(row)));
                    }
                }
            }
        }
        Ok((due, gone, next_due))
    }
}

/// Whether a message is still set aside there. Somebody else may have delivered or removed it.
fn is_aside(found: &Found, lane: Lane, position: Position) -> bool {
    let place = found.aside.as_deref().and_then(Place::of_mark);
    let expected = Place::of(Part::Waiting, lane, position);
    !found.is_delivered && found.outstanding.is_none() && place == Some(expected)
}

fn origin(row: &AsideRow) -> Origin {
    let (attempts, sink, waited_for) = (row.attempts, row.sink.clone(), row.state);
    Origin::Aside { attempts, sink, waited_for }
}

/// Gives messages to the readers that want them, in their order, up to what each takes. Returns those that are left.
fn give_out(
    seen: Vec<Seen>,
    readers: &[Reader],
    most_bytes: usize,
    readings: &mut [PendingReading],
) -> HashSet<Row> {
    let mut left = HashSet::new();
    let mut bytes = vec![0; readers.len()];
    for Seen { row, found, .. } in seen {
        let wants = |reader: &Reader| reader.wants(&found.message.topic);
        let Some(n) = readers.iter().position(wants) else {
            left.insert(row);
            continue;
        };
        bytes[n] += found.message.payload.len();
        let reading = &mut readings[n];
        let is_first = reading.messages.is_empty();
        // Once one was left, all that follow are: they may be of its key.
        reading.more |=
            !is_first && (reading.messages.len() >= readers[n].most || bytes[n] > most_bytes);
        if reading.more {
            left.insert(row);
            continue;
        }
        let message = found.message(Position::default(), Origin::Lane { due_in: None });
        reading.messages.push((row, message));
    }
    left
}
