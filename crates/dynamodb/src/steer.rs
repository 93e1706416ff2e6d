//! What people decide about dead messages: a short transaction at a time.

use crate::{
    DynamoDb,
    aside::Record,
    error::{Failure, Refused, corrupt, refused_actions},
    inspect::takes,
    item::{
        self, Item, get_number, get_text,
        name::{ASIDE, MESSAGE_ID},
        number, text,
    },
    leases::leases_key,
    settle::{LARGE, MOST_BYTES, delete_message, delete_record, move_aside, put_record, unbuilt},
    tables::{NAME, SCOPE},
};
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, TransactWriteItem, Update};
use std::collections::{BTreeSet, VecDeque};
use tidegate_core::{
    MessageId, StoreError,
    outbox::{AuditLine, Decision, OnDead, Selection, SteerPage, Steered, StuckState},
};

const OPERATION: &str = "steer messages";
const AUDIT: &str = "audit";

/// Messages of one transaction: up to three actions each, and two for all.
const MOST: usize = 30;

impl DynamoDb {
    pub(crate) async fn steer(&self, page: SteerPage) -> Result<Steered, StoreError> {
        let most = page.most.clamp(1, MOST);
        let (seen, next) = match &page.which.ids {
            Some(ids) => self.named(ids, page.after.as_ref(), most).await?,
            None => self.dead_behind(page.after.as_ref(), most).await?,
        };
        let which = Selection { ids: None, ..page.which.clone() };
        let is_chosen =
            |record: &Record| record.row.state == StuckState::Dead && takes(&which, record);
        let chosen: Vec<Record> = seen.into_iter().filter(is_chosen).collect();
        let (messages, line) = self.carry_out(&page, chosen).await?;
        Ok(Steered { messages, next, line })
    }

    /// Those that are named, behind the last of them.
    async fn named(
        &self,
        ids: &[MessageId],
        after: Option<&MessageId>,
        most: usize,
    ) -> Result<(Vec<Record>, Option<MessageId>), StoreError> {
        let mut seen = BTreeSet::new();
        let ids: Vec<MessageId> =
            ids.iter().filter(|id| seen.insert(id.to_string())).cloned().collect();
        let begin = ids.iter().position(|id| Some(id) == after).map_or(0, |at| at + 1);
        let rest = &ids[begin..];
        let records = self.records_of(&rest[..most.min(rest.len())]).await?;
        Ok((records, rest.get(most.wrapping_sub(1)).filter(|_| rest.len() > most).cloned()))
    }

    /// The dead behind a place. The next page begins behind a place, too: the message there may be gone by then.
    async fn dead_behind(
        &self,
        after: Option<&MessageId>,
        most: usize,
    ) -> Result<(Vec<Record>, Option<MessageId>), StoreError> {
        let is_dead = |record: &Record| record.row.state == StuckState::Dead;
        let records = self.find_records(after, most, is_dead).await?;
        let last = records.last().filter(|_| records.len() == most);
        let next = last.map(|record| MessageId::text(record.place().page()));
        Ok((records, next))
    }

    /// Returns how many messages were changed, and the command's audit line.
    async fn carry_out(
        &self,
        page: &SteerPage,
        chosen: Vec<Record>,
    ) -> Result<(u64, Option<i64>), StoreError> {
        if chosen.is_empty() {
            return Ok((0, page.line));
        }
        self.client.leases(OPERATION).await?;
        let line = page.line.unwrap_or_else(|| self.now().as_micros() as i64);
        let (mut groups, mut messages) = (groups(chosen), 0);
        while let Some(mut group) = groups.pop_front() {
            let mut actions =
                vec![self.tell_relays()?, self.note_decision(page, line, group.len())?];
            let mut sizes = Vec::new();
            for record in &group {
                let own = self.decide(page.decision, record)?;
                sizes.push(own.len());
                actions.extend(own);
            }
            let failure = match self.client.transact_leased(OPERATION, actions).await {
                Ok(()) => {
                    messages += group.len();
                    continue;
                }
                Err(failure) => failure,
            };
            let changed = match &failure {
                Failure::Cancelled(codes) => leave_out(&mut group, &sizes, codes),
                _ => Vec::new(),
            };
            match failure {
                _ if !changed.is_empty() => {
                    messages += self.remove_orphans(page, line, changed).await?;
                }
                // One of them may be the reason, or all of them together.
                Failure::Cancelled(_) | Failure::Invalid(_) if group.len() > 1 => {
                    groups.push_front(group.split_off(group.len() / 2));
                }
                failure => return Err(failure.into_error(OPERATION)),
            }
            if !group.is_empty() {
                groups.push_front(group);
            }
        }
        Ok((messages as u64, if messages > 0 { Some(line) } else { page.line }))
    }

    /// Of some records that did not go with their messages any more, removes those whose message is gone, or is not
    /// set aside there. Returns how many of them were dropped: nothing is left that could be tried again.
    async fn remove_orphans(
        &self,
        page: &SteerPage,
        line: i64,
        records: Vec<Record>,
    ) -> Result<usize, StoreError> {
        let ids: Vec<String> = records.iter().map(|record| record.id().to_owned()).collect();
        let items = self.client.get_all(OPERATION, &ids, Some(&[MESSAGE_ID, ASIDE])).await?;
        let is_there = |record: &Record| {
            let mark = items.get(record.id()).and_then(|item| get_text(item, ASIDE));
            mark.is_some_and(|mark| mark == record.place().mark())
        };
        let orphans: Vec<Record> = records.into_iter().filter(|it| !is_there(it)).collect();
        if orphans.is_empty() {
            return Ok(0);
        }
        let dropped = if page.decision == Decision::Drop { orphans.len() } else { 0 };
        let mut actions = vec![self.tell_relays()?];
        if dropped > 0 {
            actions.push(self.note_decision(page, line, dropped)?);
        }
        for record in &orphans {
            actions.push(delete_record(self.tables(), record.place())?);
        }
        let removed = self.client.transact_leased(OPERATION, actions).await;
        removed.map(|()| dropped).map_err(|failure| failure.into_error(OPERATION))
    }

    fn decide(
        &self,
        decision: Decision,
        record: &Record,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let (tables, from) = (self.tables(), record.place());
        if decision == Decision::Drop {
            return Ok(vec![
                delete_message(tables, record.id(), from)?,
                delete_record(tables, from)?,
            ]);
        }
        let mut due = record.clone();
        (due.row.state, due.row.attempts, due.row.then) = (StuckState::Retry, 0, OnDead::Skip);
        due.row.due = self.now();
        let to = due.place();
        let mut actions =
            vec![move_aside(tables, record.id(), from, to)?, put_record(tables, &due)?];
        if from != to {
            actions.push(delete_record(tables, from)?);
        }
        Ok(actions)
    }

    /// Relays look at what waits when this number has changed.
    fn tell_relays(&self) -> Result<TransactWriteItem, StoreError> {
        let update = Update::builder()
            .table_name(&self.address().side_table)
            .set_key(Some(leases_key()))
            .update_expression("SET Steered = Steered + :one")
            .expression_attribute_values(":one", number(1))
            .build();
        Ok(TransactWriteItem::builder().update(update.map_err(unbuilt)?).build())
    }

    fn note_decision(
        &self,
        page: &SteerPage,
        line: i64,
        messages: usize,
    ) -> Result<TransactWriteItem, StoreError> {
        let update = Update::builder()
            .table_name(&self.address().side_table)
            .key(SCOPE, text(AUDIT))
            .key(NAME, text(format!("{line:019}")))
            .update_expression(
                "SET AtMs = :at, Who = :who, What = :what, Why = :why ADD Messages :messages",
            )
            .expression_attribute_values(":at", number(line / 1_000))
            .expression_attribute_values(":who", text(&page.by.who))
            .expression_attribute_values(":what", text(page.decision.as_str()))
            .expression_attribute_values(":why", text(&page.by.why))
            .expression_attribute_values(":messages", number(messages))
            .build();
        Ok(TransactWriteItem::builder().update(update.map_err(unbuilt)?).build())
    }

    pub(crate) async fn audit_lines(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        const OPERATION: &str = "read outbox";
        let request = self
            .client
            .sdk
            .query()
            .table_name(&self.address().side_table)
            .key_condition_expression("#scope = :scope")
            .expression_attribute_names("#scope", SCOPE)
            .expression_attribute_values(":scope", text(AUDIT))
            .scan_index_forward(false)
            .limit(limit.clamp(1, 10_000) as i32)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.client.call(OPERATION, || request.clone().send()).await;
        let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
        let read = |item: &Item| {
            audit_line(item).ok_or_else(|| corrupt(OPERATION, "an audit line cannot be read"))
        };
        answer.items().iter().map(read).collect()
    }
}

fn audit_line(item: &Item) -> Option<AuditLine> {
    Some(AuditLine {
        at_ms: get_number(item, "AtMs")?,
        who: get_text(item, "Who")?.to_owned(),
        what: get_text(item, "What")?.to_owned(),
        messages: get_number(item, "Messages")?,
        why: get_text(item, "Why")?.to_owned(),
    })
}

/// Takes out messages that are not dead any more: somebody else has decided about them, or they are gone.
fn leave_out(group: &mut Vec<Record>, sizes: &[usize], codes: &[String]) -> Vec<Record> {
    let mut first = 2;
    let mut sizes = sizes.iter();
    let is_refused = |_: &mut Record| {
        let next = first + sizes.next().copied().unwrap_or_default();
        let own = first..next;
        first = next;
        refused_actions(codes, own) == Some(Refused::Condition)
    };
    group.extract_if(.., is_refused).collect()
}

/// Messages that a transaction takes together.
fn groups(chosen: Vec<Record>) -> VecDeque<Vec<Record>> {
    let mut groups: VecDeque<Vec<Record>> = VecDeque::new();
    let mut bytes = 0;
    for record in chosen {
        let size = record.bytes.max(LARGE) + item::size(&record.item()) * 2;
        bytes += size;
        match groups.back_mut() {
            Some(group) if bytes <= MOST_BYTES => group.push(record),
            _ => {
                bytes = size;
                groups.push_back(vec![record]);
            }
        }
    }
    groups
}
