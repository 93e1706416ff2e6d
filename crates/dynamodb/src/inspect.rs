//! Reading for people. What is counted is counted page by page, and nothing is kept of it but sums.

use crate::{
    DynamoDb,
    aside::{Part, Place, Record},
    item::{
        Item, decode, get_number, get_text,
        name::{ASIDE, MESSAGE_ID, OUTSTANDING, TOPIC, TOPIC_SHARD},
        number, text,
    },
    shard,
    tables::{NAME, SCOPE},
    ticks::Ticks,
};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, Select};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tidegate_core::{
    InspectOutbox, MessageId, StoreError, WorkerId,
    limits::MAX_LISTED,
    outbox::{
        Advice, AuditLine, DeadGroup, HeldKey, OnDead, Origin, OutboxStatus, Outstanding, Position,
        RelayStatus, Selection, SteerPage, Steered, Stored, Stuck, StuckQuery, StuckState,
        TopicStatus,
    },
};

pub(crate) const OPERATION: &str = "read outbox";

/// Records that are looked at with one request.
const PAGE: usize = 500;

#[async_trait]
impl InspectOutbox for DynamoDb {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        let mut census = Census::default();
        self.count_outstanding(&mut census).await?;
        self.count_aside(&mut census).await?;
        let (leases, now) = (self.client.find_leases(OPERATION).await?, self.now());
        let relays = leases.iter().flat_map(|leases| {
            let lives = |at_ms: i64, lease: Duration| {
                Duration::from_millis(at_ms.unsigned_abs()) + lease + lease / 10 > now
            };
            let live = leases.relays.iter().filter(move |(_, it)| lives(it.at_ms, it.lease));
            live.map(|(name, _)| RelayStatus {
                relay: WorkerId(name.clone()),
                lanes: leases.lanes_of(name) as u64,
            })
        });
        Ok(OutboxStatus {
            relays: relays.collect(),
            sinks: self.troubled_sinks().await?,
            limit: self.limit().await?,
            advice: census.advice(),
            topics: census.topics.into_values().collect(),
            ..OutboxStatus::default()
        })
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        let limit = self.limit().await?;
        let most = limit.map(|limit| limit.saturating_add(1));
        let mut messages = self.count(most).await?;
        if most.is_none_or(|most| messages < most) {
            messages += self.count_waiting(most.map(|most| most - messages)).await?;
        }
        Ok(Outstanding { messages, limit })
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        let mut groups: BTreeMap<(String, String, String), DeadGroup> = BTreeMap::new();
        self.each_record(&[Part::Waiting, Part::Dead], |record| {
            if record.row.state != StuckState::Dead {
                return;
            }
            let id = MessageId::text(record.id());
            let (topic, sink, reason) = (&record.row.topic, &record.row.sink, &record.row.reason);
            let group = groups.entry((topic.clone(), sink.clone(), reason.clone()));
            let group = group.or_insert_with(|| DeadGroup {
                topic: topic.clone(),
                sink: sink.clone(),
                reason: reason.clone(),
                messages: 0,
                first: id.clone(),
                last: id.clone(),
            });
            group.messages += 1;
            group.last = id;
        })
        .await?;
        let mut groups: Vec<DeadGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.messages));
        Ok(groups)
    }

    /// In the order of their records: by lane, and in a lane as they were set aside; what waits first.
    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        let limit = query.limit.min(MAX_LISTED);
        let fits = |record: &Record| {
            query.state.is_none_or(|state| state == record.row.state) && takes(&query.which, record)
        };
        let records = match &query.which.ids {
            Some(ids) => {
                let is_last = |id: &MessageId| query.after.as_ref() == Some(id);
                let begin = ids.iter().position(is_last).map_or(0, |at| at + 1);
                self.records_of(&ids[begin..]).await?.into_iter().filter(fits).take(limit).collect()
            }
            None => self.find_records(query.after.as_ref(), limit, fits).await?,
        };
        let ids: Vec<String> = records.iter().map(|record| record.id().to_owned()).collect();
        let items =
            self.client.get_all(OPERATION, &ids, Some(&[MESSAGE_ID, "PartitionKey"])).await?;
        let now = self.now();
        let stuck = |record: Record| {
            let key = items.get(record.id()).and_then(|item| get_text(item, "PartitionKey"));
            let is_timed = matches!(record.row.state, StuckState::Retry | StuckState::Later);
            Stuck {
                id: MessageId::text(record.id()),
                topic: record.row.topic.clone(),
                key: key.map(str::to_owned),
                sink: record.row.sink.clone(),
                state: record.row.state,
                attempts: record.row.attempts,
                reason: record.row.reason.clone(),
                then: record.row.then,
                due_in: is_timed.then(|| record.row.due.saturating_sub(now)),
            }
        };
        Ok(records.into_iter().map(stuck).collect())
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        let ids = [id.to_string()];
        let mut items = self.client.get_all(OPERATION, &ids, None).await?;
        let Some(found) = items.remove(&ids[0]).and_then(|item| decode(&item)) else {
            return Ok(None);
        };
        let sent = found.is_sent();
        let message = found.message(Position::default(), Origin::Lane { due_in: None });
        Ok(Some(Stored { message, sent }))
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        self.steer(page).await
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        self.audit_lines(limit).await
    }
}

/// Whether a selection takes a record.
pub(crate) fn takes(which: &Selection, record: &Record) -> bool {
    let row = &record.row;
    let is_named = |ids: &Vec<MessageId>| ids.iter().any(|id| id.to_string() == record.id());
    which.ids.as_ref().is_none_or(is_named)
        && which.topic.as_ref().is_none_or(|topic| *topic == row.topic)
        && which.sink.as_ref().is_none_or(|sink| *sink == row.sink)
        && which.reason.as_ref().is_none_or(|reason| row.reason.contains(reason.as_str()))
}

/// What a count finds.
#[derive(Default)]
struct Census {
    topics: BTreeMap<String, TopicStatus>,
    /// Messages in shards with negative numbers.
    negative: u64,
    /// Keys behind messages that were parked.
    parked: BTreeSet<HeldKey>,
}

impl Census {
    fn topic(&mut self, topic: &str) -> &mut TopicStatus {
        let new = || TopicStatus { topic: topic.to_owned(), ..TopicStatus::default() };
        self.topics.entry(topic.to_owned()).or_insert_with(new)
    }

    fn outstanding(&mut self, item: &Item, now: Ticks) {
        let created = get_number(item, OUTSTANDING).map_or(now, Ticks);
        let status = self.topic(get_text(item, TOPIC).unwrap_or_default());
        status.outstanding += 1;
        status.oldest = status.oldest.max(Some(now.since(created)));
        self.negative += u64::from(get_text(item, TOPIC_SHARD).is_some_and(shard::is_negative));
    }

    fn aside(&mut self, record: &Record, now: Ticks) {
        let row = &record.row;
        let is_parked = row.state == StuckState::Behind
            && row.held_key().is_some_and(|key| self.parked.contains(&key));
        // Records of a key come in the order of their positions.
        if row.state == StuckState::Dead && row.then == OnDead::Park {
            self.parked.extend(row.held_key());
        }
        let status = self.topic(&row.topic);
        match row.state {
            StuckState::Dead => status.dead += 1,
            StuckState::Behind if is_parked => status.dead += 1,
            StuckState::Behind | StuckState::Later => status.waiting += 1,
            StuckState::Retry => status.retrying += 1,
            StuckState::Unrouted => status.unrouted += 1,
        }
        if row.state != StuckState::Dead && !is_parked {
            status.outstanding += 1;
            status.oldest = status.oldest.max(Some(now.since(record.created())));
        }
    }

    fn advice(&self) -> Option<Advice> {
        (self.negative > 0).then(|| Advice {
            problem: format!(
                "{} messages are in shards with negative numbers, as some versions of Brighter write them",
                self.negative
            ),
            advice: "Tidegate relays them; Brighter's own reads by topic do not find them: use a version of Brighter \
                     that takes the hash of a key as an unsigned number"
                .to_owned(),
        })
    }
}

impl DynamoDb {
    async fn count_outstanding(&self, census: &mut Census) -> Result<(), StoreError> {
        let mut from = None;
        loop {
            let request = self
                .client
                .sdk
                .scan()
                .table_name(&self.address().table)
                .index_name(&self.address().indexes.outstanding_all)
                .projection_expression("#topic, #outstanding, #shard")
                .expression_attribute_names("#topic", TOPIC)
                .expression_attribute_names("#outstanding", OUTSTANDING)
                .expression_attribute_names("#shard", TOPIC_SHARD)
                .set_exclusive_start_key(from)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = self.client.call(OPERATION, || request.clone().send()).await;
            let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
            let now = Ticks::now();
            answer.items().iter().for_each(|item| census.outstanding(item, now));
            from = answer.last_evaluated_key().filter(|key| !key.is_empty()).cloned();
            if from.is_none() {
                return Ok(());
            }
        }
    }

    async fn count_aside(&self, census: &mut Census) -> Result<(), StoreError> {
        let now = Ticks::now();
        self.each_record(&[Part::Waiting, Part::Dead], |record| census.aside(&record, now)).await
    }

    /// How many messages are outstanding in the index; no further than `most`.
    async fn count(&self, most: Option<u64>) -> Result<u64, StoreError> {
        let (mut messages, mut from) = (0, None);
        loop {
            let left =
                most.map(|most| most.saturating_sub(messages).clamp(1, i32::MAX as u64) as i32);
            let request = self
                .client
                .sdk
                .scan()
                .table_name(&self.address().table)
                .index_name(&self.address().indexes.outstanding_all)
                .select(Select::Count)
                .set_limit(left)
                .set_exclusive_start_key(from)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = self.client.call(OPERATION, || request.clone().send()).await;
            let answer = answer.map_err(|failure| failure.into_error(OPERATION))?;
            messages += u64::from(answer.count().unsigned_abs());
            from = answer.last_evaluated_key().filter(|key| !key.is_empty()).cloned();
            if from.is_none() || most.is_some_and(|most| messages >= most) {
                return Ok(messages);
            }
        }
    }

    /// How many messages were set aside and are not dead; no further than about `most`.
    async fn count_waiting(&self, most: Option<u64>) -> Result<u64, StoreError> {
        let (mut census, now) = (Census::default(), Ticks::now());
        let page = most.map(|most| most.clamp(1, PAGE as u64) as usize);
        for scope in Part::Waiting.scopes() {
            let mut from = None;
            loop {
                let (records, next) =
                    self.client.records(OPERATION, &scope, from, page, false).await?;
                records.iter().for_each(|record| census.aside(record, now));
                let waiting = census.topics.values().map(|topic| topic.outstanding).sum();
                if most.is_some_and(|most| waiting >= most) {
                    return Ok(waiting);
                }
                from = next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(census.topics.values().map(|topic| topic.outstanding).sum())
    }

    async fn each_record(
        &self,
        parts: &[Part],
        mut each: impl FnMut(Record),
    ) -> Result<(), StoreError> {
        for scope in parts.iter().flat_map(|part| part.scopes()) {
            let mut from = None;
            loop {
                let (records, next) =
                    self.client.records(OPERATION, &scope, from, None, false).await?;
                records.into_iter().for_each(&mut each);
                from = next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The records behind that of a message that fit, up to so many.
    pub(crate) async fn find_records(
        &self,
        after: Option<&MessageId>,
        limit: usize,
        fits: impl Fn(&Record) -> bool,
    ) -> Result<Vec<Record>, StoreError> {
        let (mut found, page) = (Vec::new(), limit.clamp(50, PAGE));
        let mut after = match after.map(MessageId::to_string) {
            None => None,
            Some(after) => match Place::of_page(&after) {
                Some(place) => Some(place),
                None => match self.place_of(&after).await? {
                    Some(place) => Some(place),
                    // It is not set aside any more: nobody knows what was behind it.
                    None => return Ok(found),
                },
            },
        };
        let all: Vec<String> =
            [Part::Waiting, Part::Dead].iter().flat_map(|it| it.scopes()).collect();
        let first = after.as_ref().and_then(|place| all.iter().position(|it| *it == place.scope()));
        for scope in &all[first.unwrap_or(0)..] {
            let mut from = after.take().map(|place| place.key());
            loop {
                let (records, next) =
                    self.client.records(OPERATION, scope, from, Some(page), false).await?;
                found.extend(records.into_iter().filter(&fits));
                if found.len() >= limit {
                    found.truncate(limit);
                    return Ok(found);
                }
                from = next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Where a message is set aside.
    pub(crate) async fn place_of(&self, id: &str) -> Result<Option<Place>, StoreError> {
        let ids = [id.to_owned()];
        let mut items = self.client.get_all(OPERATION, &ids, None).await?;
        let found = items.remove(id).and_then(|item| decode(&item));
        Ok(found.and_then(|found| Place::of_mark(&found.aside?)))
    }

    /// The records of messages, by their ids. A record may be left of a message whose item is gone, or was written
    /// anew by somebody else: such records are looked for among all.
    pub(crate) async fn records_of(&self, ids: &[MessageId]) -> Result<Vec<Record>, StoreError> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let items = self.client.get_all(OPERATION, &ids, Some(&[MESSAGE_ID, ASIDE])).await?;
        let mut records = BTreeMap::new();
        let mut unknown = BTreeSet::new();
        for id in &ids {
            let mark = items.get(id).and_then(|item| get_text(item, ASIDE));
            let record = match mark.and_then(Place::of_mark) {
                Some(place) => self.record_at(place).await?,
                None => None,
            };
            match record {
                Some(record) => drop(records.insert(id.as_str(), record)),
                None => drop(unknown.insert(id.as_str())),
            }
        }
        if !unknown.is_empty() {
            let is_unknown = |record: &Record| unknown.contains(record.id());
            let orphans = self.find_records(None, unknown.len(), is_unknown).await?;
            for record in orphans {
                let id = unknown.get(record.id()).copied();
                records.extend(id.map(|id| (id, record)));
            }
        }
        Ok(ids.iter().filter_map(|id| records.remove(id.as_str())).collect())
    }

    async fn record_at(&self, place: Place) -> Result<Option<Record>, StoreError> {
        let item = self.side_item(place.key()).await?;
        Ok(item.as_ref().and_then(Record::read))
    }

    pub(crate) async fn side_item(&self, key: Item) -> Result<Option<Item>, StoreError> {
        let request = self
            .client
            .sdk
            .get_item()
            .table_name(&self.address().side_table)
            .set_key(Some(key))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = self.client.call(OPERATION, || request.clone().send()).await;
        Ok(answer.map_err(|failure| failure.into_error(OPERATION))?.item)
    }

    /// Messages are refused while so many or more are outstanding.
    pub(crate) async fn limit(&self) -> Result<Option<u64>, StoreError> {
        let item = self.side_item(limit_key()).await?;
        Ok(item.as_ref().and_then(|item| get_number(item, "Most")))
    }

    pub(crate) async fn set_limit(&self, most: Option<u64>) -> Result<(), StoreError> {
        const OPERATION: &str = "limit the outbox";
        let mut item = limit_key();
        if let Some(most) = most {
            item.insert("Most".to_owned(), number(most));
        }
        let request =
            self.client.sdk.put_item().table_name(&self.address().side_table).set_item(Some(item));
        let answer = self.client.call(OPERATION, || request.clone().send()).await;
        answer.map(|_| ()).map_err(|failure| failure.into_error(OPERATION))
    }
}

fn limit_key() -> Item {
    Item::from([(SCOPE.to_owned(), text("settings")), (NAME.to_owned(), text("limit"))])
}
