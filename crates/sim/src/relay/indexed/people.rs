//! What publishers and people do: consistent, and without leases.

use super::{
    Client,
    table::{Content, Item, State},
};
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tidegate_core::{
    InspectOutbox, Message, MessageId, NewMessage, Publish, Retain, StoreError, WorkerId,
    outbox::{
        AuditLine, DeadGroup, Decision, HeldKey, KeyHash, OnDead, Origin, OutboxStatus,
        Outstanding, Position, RelayStatus, Sealed, Selection, SinkTrouble, SteerPage, Steered,
        Stored, Stuck, StuckQuery, StuckState, TopicStatus,
        by_state::{AsideRow, Row},
    },
};

const LANE: Origin = Origin::Lane { due_in: None };

/// A message that was set aside, as it stands: of every key, the first that waits is tried, and no other.
struct Aside<'a> {
    item: &'a Item,
    row: AsideRow,
    parked: bool,
}

fn held_key(row: &AsideRow) -> Option<HeldKey> {
    Some(HeldKey { lane: row.lane, sink: row.sink.clone(), key: row.key? })
}

impl Content {
    /// By id.
    fn asides(&self, now: Duration) -> BTreeMap<Row, Aside<'_>> {
        let mut all: Vec<(Position, &Item, &AsideRow)> = self
            .items
            .values()
            .filter_map(|item| item.aside().map(|(position, row)| (position, item, row)))
            .collect();
        all.sort_by_key(|(position, ..)| *position);
        let (mut lines, mut parked) = (BTreeSet::new(), BTreeSet::new());
        let mut asides = BTreeMap::new();
        for (_, item, stored) in all {
            let mut row = stored.clone();
            let key = held_key(&row).filter(|_| row.holds());
            let is_first = key.clone().is_none_or(|key| lines.insert(key));
            match row.state {
                StuckState::Behind if is_first => (row.state, row.due) = (StuckState::Retry, now),
                StuckState::Retry if !is_first => row.state = StuckState::Behind,
                _ => {}
            }
            let is_parked = key.as_ref().is_some_and(|key| parked.contains(key));
            let is_parked = is_parked && row.state == StuckState::Behind;
            if row.state == StuckState::Dead && row.then == OnDead::Park {
                parked.extend(key);
            }
            asides.insert(item.row.clone(), Aside { item, row, parked: is_parked });
        }
        asides
    }

    fn outstanding(&self) -> Outstanding {
        let is_outstanding = |item: &&Item| match &item.state {
            State::Pending => true,
            State::Aside(_, row, _) => row.state != StuckState::Dead,
            State::Done => false,
        };
        let messages = self.items.values().filter(is_outstanding).count() as u64;
        Outstanding { messages, limit: self.limit }
    }

    fn topics(&self, now: Duration) -> Vec<TopicStatus> {
        let mut topics: BTreeMap<&str, TopicStatus> = BTreeMap::new();
        for Aside { item, row, parked } in self.asides(now).into_values() {
            let status = topics.entry(&item.new.topic).or_default();
            match row.state {
                _ if parked => status.dead += 1,
                StuckState::Dead => status.dead += 1,
                StuckState::Behind | StuckState::Later => status.waiting += 1,
                StuckState::Retry => status.retrying += 1,
                StuckState::Unrouted => status.unrouted += 1,
            }
            if row.state != StuckState::Dead && !parked {
                status.outstanding += 1;
                status.oldest = status.oldest.max(Some(now.saturating_sub(item.created)));
            }
        }
        for item in self.items.values().filter(|item| matches!(item.state, State::Pending)) {
            let status = topics.entry(&item.new.topic).or_default();
            status.outstanding += 1;
            status.oldest = status.oldest.max(Some(now.saturating_sub(item.created)));
        }
        let topic = |(topic, status): (&str, _)| TopicStatus { topic: topic.to_owned(), ..status };
        topics.into_iter().map(topic).collect()
    }

    fn troubles(&self, now: Duration) -> Vec<SinkTrouble> {
        let mut found: BTreeMap<&str, SinkTrouble> = BTreeMap::new();
        for (note, at) in self.notes.iter().filter(|(note, at)| *at + note.valid > now) {
            for sink in &note.sinks {
                let lasts = sink.lasts + now.saturating_sub(*at);
                let known = found.get(sink.sink.as_str());
                let relays = known.map_or(0, |known| known.relays) + 1;
                let reason = match known {
                    Some(known) if known.lasts >= lasts => known.reason.clone(),
                    _ => sink.reason.clone(),
                };
                let lasts = known.map_or(lasts, |known| known.lasts.max(lasts));
                let sink_name = sink.sink.clone();
                found.insert(&sink.sink, SinkTrouble { sink: sink_name, reason, lasts, relays });
            }
        }
        found.into_values().collect()
    }

    fn steer(&mut self, page: &SteerPage, now: Duration) -> Steered {
        let asides = self.asides(now);
        let behind = asides.iter().filter(|(row, aside)| {
            let id = MessageId::text((*row).clone());
            aside.row.state == StuckState::Dead
                && page.after.as_ref().is_none_or(|after| id > *after)
                && page.which.ids.as_ref().is_none_or(|ids| ids.contains(&id))
        });
        let seen: Vec<&Row> = behind.map(|(row, _)| row).take(page.most).collect();
        let chosen = seen.iter().filter(|row| takes(&page.which, row, &asides[**row].row));
        let chosen: Vec<Row> = chosen.map(|row| (*row).clone()).collect();
        let next = seen.last().filter(|_| seen.len() == page.most);
        let next = next.map(|row| MessageId::text((*row).clone()));
        for row in &chosen {
            self.decide(page.decision, row, now);
        }
        let line = self.note(page, chosen.len() as u64, now);
        Steered { messages: chosen.len() as u64, next, line }
    }

    fn decide(&mut self, decision: Decision, row: &Row, now: Duration) {
        let Some(item) = self.items.get_mut(row) else { return };
        *self.changes.entry(item.lane).or_default() += 1;
        match (decision, &mut item.state) {
            (Decision::Drop, _) => drop(self.items.remove(row)),
            (Decision::Retry, State::Aside(_, aside, _)) => {
                (aside.state, aside.due) = (StuckState::Retry, now);
                (aside.attempts, aside.then) = (0, OnDead::Skip);
            }
            (Decision::Retry, _) => {}
        }
    }

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

    fn sent(&self) -> impl Iterator<Item = &Item> {
        self.items.values().filter(|item| matches!(item.state, State::Done))
    }
}

fn takes(which: &Selection, id: &Row, row: &AsideRow) -> bool {
    let id = MessageId::text(id.clone());
    which.ids.as_ref().is_none_or(|ids| ids.contains(&id))
        && which.topic.as_ref().is_none_or(|topic| *topic == row.topic)
        && which.sink.as_ref().is_none_or(|sink| *sink == row.sink)
        && which.reason.as_ref().is_none_or(|reason| row.reason.contains(reason.as_str()))
}

fn row_of(id: &MessageId) -> Option<Row> {
    id.as_number().is_none().then(|| id.to_string().into())
}

#[async_trait]
impl InspectOutbox for Client {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        let now = self.now();
        self.request("status", |table| {
            let content = table.content();
            let lanes = |relay: &str| {
                content.leases.lanes.values().filter(|(holder, _)| holder == relay).count() as u64
            };
            let relays = content.leases.relays.keys();
            OutboxStatus {
                topics: content.topics(now),
                relays: relays
                    .map(|it| RelayStatus { relay: WorkerId(it.clone()), lanes: lanes(it) })
                    .collect(),
                sinks: content.troubles(table.now()),
                limit: content.limit,
                ..OutboxStatus::default()
            }
        })
        .await
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        Ok(self.table.content().outstanding())
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        let content = self.table.content();
        let mut groups: BTreeMap<(String, String, String), Vec<MessageId>> = BTreeMap::new();
        for (id, Aside { row, .. }) in content.asides(self.now()) {
            if row.state == StuckState::Dead {
                let group = (row.topic, row.sink, row.reason);
                groups.entry(group).or_default().push(MessageId::text(id));
            }
        }
        let group = |((topic, sink, reason), ids): (_, Vec<MessageId>)| DeadGroup {
            topic,
            sink,
            reason,
            messages: ids.len() as u64,
            first: ids[0].clone(),
            last: ids[ids.len() - 1].clone(),
        };
        let mut groups: Vec<DeadGroup> = groups.into_iter().map(group).collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.messages), group.first.clone()));
        Ok(groups)
    }

    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        let now = self.now();
        self.request("stuck", |table| {
            let content = table.content();
            let asides = content.asides(now).into_iter().filter(|(id, aside)| {
                query.after.as_ref().is_none_or(|after| MessageId::text(id.clone()) > *after)
                    && query.state.is_none_or(|state| state == aside.row.state)
                    && takes(&query.which, id, &aside.row)
            });
            let stuck = |(id, Aside { item, row, .. }): (Row, Aside<'_>)| Stuck {
                id: MessageId::text(id),
                topic: row.topic,
                key: item.new.key.clone(),
                sink: row.sink,
                state: row.state,
                attempts: row.attempts,
                reason: row.reason,
                then: row.then,
                due_in: matches!(row.state, StuckState::Retry | StuckState::Later)
                    .then(|| row.due.saturating_sub(now)),
            };
            asides.take(query.limit).map(stuck).collect()
        })
        .await
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        let Some(row) = row_of(&id) else { return Ok(None) };
        let content = self.table.content();
        let stored = |item: &Item| Stored {
            message: item.message(LANE),
            sent: matches!(item.state, State::Done),
        };
        Ok(content.items.get(&row).map(stored))
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        Ok(self.table.content().steer(&page, self.now()))
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        Ok(self.table.content().audit.iter().rev().take(limit).cloned().collect())
    }
}

#[async_trait]
impl Publish for Client {
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        messages.iter().try_for_each(NewMessage::check)?;
        let first = {
            let mut content = self.table.content();
            content.outstanding().admit()?;
            content.published += messages.len() as u64;
            content.published - messages.len() as u64
        };
        let mut ids = Vec::new();
        for (number, message) in (first..).zip(messages) {
            // In no order that anybody could rely on.
            let row = format!("{:016x}-{number}", KeyHash::of(&number.to_string()).0);
            // Later than all before, however coarse the clock is.
            let created = self.now() + Duration::from_nanos(number);
            self.table.put(&row, created, message);
            ids.push(MessageId::text(row));
        }
        Ok(ids)
    }

    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError> {
        self.table.content().limit = most;
        Ok(())
    }
}

#[async_trait]
impl Retain for Client {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        let now = self.now();
        self.request("seal", |table| {
            let mut content = table.content();
            let old = content.sent().filter(|item| item.created + age <= now);
            let rows: BTreeSet<Row> = old.map(|item| item.row.clone()).collect();
            if rows.is_empty() {
                return None;
            }
            let place = content.seals.len() as i64;
            let messages = rows.len() as u64;
            content.seals.insert(place, rows);
            Some(Sealed { place, messages })
        })
        .await
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let content = self.table.content();
        let rows = content.seals.get(&sealed.place).into_iter().flatten();
        let items = rows.filter_map(|row| content.items.get(row)).map(|item| item.message(LANE));
        let behind = items.filter(|it| after.as_ref().is_none_or(|after| it.id > *after));
        Ok(behind.take(limit).collect())
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        self.request("discard", |table| {
            let mut content = table.content();
            let rows = content.seals.remove(&sealed.place).unwrap_or_default();
            rows.iter().filter(|row| content.items.remove(*row).is_some()).count() as u64
        })
        .await
    }
}
