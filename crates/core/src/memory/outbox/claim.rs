//! Reading lanes, and what was set aside and is due.

use super::{AsideRow, OutboxContent};
use crate::{
    MessageId,
    limits::MAX_BEHIND,
    outbox::{Claim, ClaimRequest, Message, Origin, Reader, Reading, StuckState},
};
use std::{collections::BTreeSet, time::Duration};

impl ClaimRequest {
    fn wants(&self, row: &AsideRow) -> bool {
        self.lanes.contains(&row.lane) && !self.closed.contains(&row.sink)
    }
}

impl OutboxContent {
    pub(super) fn claim(&self, request: &ClaimRequest, now: Duration) -> Claim {
        let wanted = |row: &AsideRow| request.wants(row);
        let timed = |row: &AsideRow| matches!(row.state, StuckState::Retry | StuckState::Later);
        let dues = self
            .aside
            .iter()
            .filter(|(id, row)| wanted(row) && timed(row) && !request.under_way.contains(id));
        let next_due = dues.map(|(_, row)| row.due.saturating_sub(now)).min();
        Claim {
            readings: request
                .readers
                .iter()
                .map(|it| self.read(it, request.most_bytes, now))
                .collect(),
            due: self.due(request, now),
            next_due,
            held_back: false,
        }
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

    fn due(&self, request: &ClaimRequest, now: Duration) -> Vec<Message> {
        let free = |id: &MessageId| !request.under_way.contains(id);
        let is_due = |row: &AsideRow| {
            matches!(row.state, StuckState::Retry | StuckState::Later) && row.due <= now
        };
        let mut heads: Vec<(&MessageId, &AsideRow)> = self
            .aside
            .iter()
            .filter(|(id, row)| request.wants(row) && is_due(row) && free(id))
            .collect();
        heads.sort_by_key(|(id, row)| (row.due, **id));
        heads.truncate(request.most_due);
        let mut ids: BTreeSet<MessageId> = heads.iter().map(|(id, _)| **id).collect();
        for (head, row) in heads.iter().filter(|(_, row)| row.state == StuckState::Retry) {
            let Some(key) = row.held_key() else { continue };
            let of_key = |row: &AsideRow| row.holds() && row.held_key().as_ref() == Some(&key);
            let mut line = self.aside.iter().filter(|(_, row)| of_key(row));
            if line.next().is_none_or(|(first, _)| first != *head) {
                continue;
            }
            let behind = line.take(MAX_BEHIND).take_while(|(_, it)| it.state == StuckState::Behind);
            ids.extend(behind.map(|(id, _)| *id).filter(free));
        }
        let (mut bytes, mut first) = (0, true);
        let messages = ids.into_iter().filter_map(|id| {
            let row = self.aside.get(&id)?;
            let delayed = row.state == StuckState::Later;
            let origin = Origin::Aside { attempts: row.attempts, sink: row.sink.clone(), delayed };
            self.message(id, origin)
        });
        let fits = |message: &Message| {
            bytes += message.payload.len();
            std::mem::take(&mut first) || bytes <= request.most_bytes
        };
        messages.take_while(fits).collect()
    }
}
