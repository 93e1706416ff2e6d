//! Reading lanes, and what was set aside and is due.

use super::{AsideRow, OutboxContent};
use crate::{
    Position, StoreError,
    limits::MAX_BEHIND,
    outbox::{Claim, ClaimRequest, HeldKey, Message, Origin, Reader, Reading, StuckState},
};
use std::{collections::BTreeSet, time::Duration};

impl OutboxContent {
    pub(super) fn claim(&self, request: &ClaimRequest, now: Duration) -> Result<Claim, StoreError> {
        self.check_epoch("claim messages", &request.epoch)?;
        let dues = self.aside.iter().filter(|(id, row)| self.is_wanted(request, **id, row));
        let next_due = dues.map(|(_, row)| row.due.saturating_sub(now)).min();
        Ok(Claim {
            readings: request
                .readers
                .iter()
                .map(|it| self.read(it, request.most_bytes, now))
                .collect(),
            due: self.due(request, now),
            next_due,
            ..Claim::default()
        })
    }

    fn read(&self, reader: &Reader, most_bytes: usize, now: Duration) -> Reading {
        let wanted = self.messages.iter().filter(|(id, stored)| {
            let place = reader.places.iter().find(|place| place.lane == stored.lane);
            place.is_some_and(|place| id.0 > place.after) && reader.wants(&stored.topic)
        });
        let mut reading = Reading { read_to: self.last_id, ..Reading::default() };
        let mut bytes = 0;
        for (id, stored) in wanted {
            bytes += stored.payload.len();
            let full = reading.messages.len() == reader.most
                || bytes > most_bytes && !reading.messages.is_empty();
            if full {
                reading.read_to = id.0 - 1;
                reading.more = true;
                break;
            }
            let due_in = stored.not_before.filter(|at| *at > now).map(|at| at - now);
            reading.messages.extend(self.message(*id, Origin::Lane { due_in }));
        }
        reading
    }

    /// What holds a key, in order.
    fn line(&self, key: &HeldKey) -> impl Iterator<Item = (&Position, &AsideRow)> {
        let of_key = |row: &AsideRow| row.holds() && row.held_key().as_ref() == Some(key);
        self.aside.iter().filter(move |(_, row)| of_key(row))
    }

    /// Whether a message may be due by itself. Of a key, only the first that holds it is.
    fn is_wanted(&self, request: &ClaimRequest, id: Position, row: &AsideRow) -> bool {
        let is_first = |key: HeldKey| self.line(&key).next().is_none_or(|(first, _)| *first == id);
        let is_head = match row.state {
            StuckState::Later => true,
            StuckState::Retry => row.held_key().is_none_or(is_first),
            StuckState::Behind | StuckState::Unrouted | StuckState::Dead => false,
        };
        is_head
            && request.lanes.contains(&row.lane)
            && !request.closed.contains(&row.sink)
            && !request.under_way.contains(&id)
    }

    fn due(&self, request: &ClaimRequest, now: Duration) -> Vec<Message> {
        let mut heads: Vec<(&Position, &AsideRow)> = self
            .aside
            .iter()
            .filter(|(id, row)| row.due <= now && self.is_wanted(request, **id, row))
            .collect();
        heads.sort_by_key(|(id, row)| (row.due, **id));
        heads.truncate(request.most_due);
        let mut ids: BTreeSet<Position> = heads.iter().map(|(id, _)| **id).collect();
        for (head, row) in heads.iter().filter(|(_, row)| row.state == StuckState::Retry) {
            let Some(key) = row.held_key() else { continue };
            let line = self.line(&key).skip_while(|(id, _)| id <= head).take(MAX_BEHIND);
            let behind = line.take_while(|(id, it)| {
                it.state == StuckState::Behind && !request.under_way.contains(id)
            });
            ids.extend(behind.map(|(id, _)| *id));
        }
        let (mut bytes, mut first) = (0, true);
        let messages = ids.into_iter().filter_map(|id| {
            let row = self.aside.get(&id)?;
            let (attempts, sink, waited_for) = (row.attempts, row.sink.clone(), row.state);
            let origin = Origin::Aside { attempts, sink, waited_for };
            self.message(id, origin)
        });
        let fits = |message: &Message| {
            bytes += message.payload.len();
            std::mem::take(&mut first) || bytes <= request.most_bytes
        };
        messages.take_while(fits).collect()
    }
}
