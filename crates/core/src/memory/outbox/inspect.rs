//! Reading for people, and what they decide.

use super::{AsideRow, OutboxContent};
use crate::{
    Memory, MessageId, StoreError, WorkerId,
    outbox::{
        AuditLine, DeadGroup, Decision, HeldKey, InspectOutbox, OnDead, Origin, OutboxStatus,
        Outstanding, Position, RelayStatus, Selection, SteerPage, Steered, Stored, Stuck,
        StuckQuery, StuckState, TopicStatus,
    },
};
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, btree_map::Range},
    ops::Bound,
    time::Duration,
};

#[async_trait]
impl InspectOutbox for Memory {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        Ok(self.content().outbox.status(self.now()))
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        Ok(self.content().outbox.outstanding())
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        Ok(self.content().outbox.dead_groups())
    }

    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        Ok(self.content().outbox.stuck(&query, self.now()))
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        let Some(id) = id.as_number().map(Position) else { return Ok(None) };
        let outbox = &self.content().outbox;
        let sent = !outbox.is_unread(id) && !outbox.aside.contains_key(&id);
        let message = outbox.message(id, Origin::Lane { due_in: None });
        Ok(message.map(|message| Stored { message, sent }))
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        let (mut content, now) = (self.content(), self.now());
        Ok(content.outbox.steer(&page, now))
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        Ok(self.content().outbox.audit.iter().rev().take(limit).cloned().collect())
    }
}

impl Selection {
    fn takes(&self, id: Position, row: &AsideRow) -> bool {
        self.ids.as_ref().is_none_or(|ids| ids.contains(&id.into()))
            && self.topic.as_ref().is_none_or(|topic| *topic == row.topic)
            && self.sink.as_ref().is_none_or(|sink| *sink == row.sink)
            && self.reason.as_ref().is_none_or(|reason| row.reason.contains(reason.as_str()))
    }
}

impl OutboxContent {
    pub(super) fn outstanding(&self) -> Outstanding {
        let unread = self.messages.keys().filter(|id| self.is_unread(**id)).count();
        let aside = self.aside.values().filter(|row| row.state != StuckState::Dead).count();
        Outstanding { messages: (unread + aside) as u64, limit: self.limit }
    }

    fn aside_behind(&self, id: Option<&MessageId>) -> Range<'_, Position, AsideRow> {
        let after = Position(MessageId::number_before(id));
        self.aside.range((Bound::Excluded(after), Bound::Unbounded))
    }

    fn steer(&mut self, page: &SteerPage, now: Duration) -> Steered {
        let behind = self.aside_behind(page.after.as_ref());
        let dead = behind.filter(|(id, row)| {
            row.state == StuckState::Dead
                && page.which.ids.as_ref().is_none_or(|ids| ids.contains(&(**id).into()))
        });
        let seen: Vec<Position> = dead.map(|(id, _)| *id).take(page.most).collect();
        let chosen = seen.iter().filter(|id| page.which.takes(**id, &self.aside[id]));
        let chosen: Vec<Position> = chosen.copied().collect();
        for id in &chosen {
            let key = match page.decision {
                Decision::Retry => self.retry(*id, now),
                Decision::Drop => self.remove(*id),
            };
            if let Some(key) = key {
                self.tend(&key, now);
            }
        }
        let next = seen.last().filter(|_| seen.len() == page.most);
        let line = self.note(page, chosen.len() as u64, now);
        Steered { messages: chosen.len() as u64, next: next.map(|id| (*id).into()), line }
    }

    fn retry(&mut self, id: Position, now: Duration) -> Option<HeldKey> {
        let row = self.aside.get_mut(&id)?;
        row.become_due(now);
        (row.attempts, row.then) = (0, OnDead::Skip);
        row.held_key()
    }

    fn remove(&mut self, id: Position) -> Option<HeldKey> {
        self.messages.remove(&id); // left there it would count as sent
        self.aside.remove(&id)?.held_key()
    }

    /// Adds a page to its command's audit line.
    fn note(&mut self, page: &SteerPage, messages: u64, now: Duration) -> Option<i64> {
        let known = page.line.and_then(|line| self.audit.get_mut(usize::try_from(line).ok()?));
        if let Some(line) = known {
            line.messages += messages;
            return page.line;
        }
        if messages == 0 {
            return None;
        }
        let (at_ms, what) = (now.as_millis() as i64, page.decision.as_str().to_owned());
        self.audit.push(AuditLine { at_ms, what, messages, ..page.by.clone() });
        Some(self.audit.len() as i64 - 1)
    }

    /// Whether a message waits behind one that was parked.
    fn is_parked(&self, id: Position, row: &AsideRow) -> bool {
        row.state == StuckState::Behind
            && self.aside.range(..id).any(|(_, before)| {
                before.then == OnDead::Park
                    && before.state == StuckState::Dead
                    && before.held_key() == row.held_key()
            })
    }

    fn status(&self, now: Duration) -> OutboxStatus {
        let mut topics: BTreeMap<&str, TopicStatus> = BTreeMap::new();
        for (id, row) in &self.aside {
            let status = topics.entry(&row.topic).or_default();
            let parked = self.is_parked(*id, row);
            match row.state {
                StuckState::Dead => status.dead += 1,
                StuckState::Behind if parked => status.dead += 1,
                StuckState::Behind | StuckState::Later => status.waiting += 1,
                StuckState::Retry => status.retrying += 1,
                StuckState::Unrouted => status.unrouted += 1,
            }
            if row.state != StuckState::Dead && !parked {
                status.outstanding += 1;
                let published = self.messages.get(id).map(|it| now.saturating_sub(it.published));
                status.oldest = status.oldest.max(published);
            }
        }
        for (_, stored) in self.messages.iter().filter(|(id, _)| self.is_unread(**id)) {
            let status = topics.entry(&stored.topic).or_default();
            status.outstanding += 1;
            status.oldest = status.oldest.max(Some(now.saturating_sub(stored.published)));
        }
        let topic =
            |(topic, status): (&str, TopicStatus)| TopicStatus { topic: topic.into(), ..status };
        OutboxStatus {
            topics: topics.into_iter().map(topic).collect(),
            relays: self.relay_status(now),
            sinks: self.troubled_sinks(now),
            limit: self.limit,
            ..OutboxStatus::default()
        }
    }

    fn relay_status(&self, now: Duration) -> Vec<RelayStatus> {
        let live = self.relays.iter().filter(|(_, expires)| **expires > now);
        let lanes = |relay: &str| self.lanes.iter().filter(|row| row.relay == relay).count() as u64;
        live.map(|(relay, _)| RelayStatus { relay: WorkerId(relay.clone()), lanes: lanes(relay) })
            .collect()
    }

    fn dead_groups(&self) -> Vec<DeadGroup> {
        let mut groups: BTreeMap<(&str, &str, &str), Vec<Position>> = BTreeMap::new();
        for (id, row) in self.aside.iter().filter(|(_, row)| row.state == StuckState::Dead) {
            groups.entry((&row.topic, &row.sink, &row.reason)).or_default().push(*id);
        }
        let group = |((topic, sink, reason), ids): ((&str, &str, &str), Vec<Position>)| DeadGroup {
            topic: topic.to_owned(),
            sink: sink.to_owned(),
            reason: reason.to_owned(),
            messages: ids.len() as u64,
            first: ids[0].into(),
            last: ids[ids.len() - 1].into(),
        };
        let mut groups: Vec<DeadGroup> = groups.into_iter().map(group).collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.messages), group.first.clone()));
        groups
    }

    fn stuck(&self, query: &StuckQuery, now: Duration) -> Vec<Stuck> {
        let wanted = self.aside_behind(query.after.as_ref()).filter(|(id, row)| {
            query.state.is_none_or(|state| state == row.state) && query.which.takes(**id, row)
        });
        let stuck = |(id, row): (&Position, &AsideRow)| Stuck {
            id: (*id).into(),
            topic: row.topic.clone(),
            key: self.messages.get(id).and_then(|stored| stored.key.clone()),
            sink: row.sink.clone(),
            state: row.state,
            attempts: row.attempts,
            reason: row.reason.clone(),
            then: row.then,
            due_in: matches!(row.state, StuckState::Retry | StuckState::Later)
                .then(|| row.due.saturating_sub(now)),
        };
        wanted.take(query.limit).map(stuck).collect()
    }
}
