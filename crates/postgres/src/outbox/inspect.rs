//! Reading for people, and what they decide.

use super::{claim::message, trouble};
use crate::{
    Postgres,
    decode::{get, stuck_state},
    error::corrupt,
};
use async_trait::async_trait;
use std::time::Duration;
use tidegate_core::{
    InspectOutbox, MessageId, StoreError, WorkerId,
    limits::MAX_LISTED,
    outbox::{
        AuditLine, DeadGroup, Decision, Holder, OnDead, Origin, OutboxStatus, Outstanding,
        RelayStatus, Selection, SteerPage, Steered, Stored, Stuck, StuckQuery, StuckState,
        TopicStatus,
    },
};
use tokio::time::sleep;
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "inspect outbox";

pub(crate) const OLDEST_SNAPSHOT: &str = include_str!("../sql/outbox/oldest_snapshot.sql");

#[async_trait]
impl InspectOutbox for Postgres {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        let read = async |sql| self.pool.query(OPERATION, sql, &[]).await;
        let topics = read(include_str!("../sql/outbox/status.sql")).await?;
        let relays = read(include_str!("../sql/outbox/relays.sql")).await?;
        let oldest_snapshot = read(OLDEST_SNAPSHOT).await?;
        Ok(OutboxStatus {
            topics: topics.iter().map(topic).collect::<Result<_, _>>()?,
            relays: relays.iter().map(relay).collect::<Result<_, _>>()?,
            sinks: trouble::read(&self.pool, trouble::OWN).await?,
            holder: self.holder().await?,
            oldest_snapshot: oldest_snapshot.first().map(a_holder).transpose()?,
            limit: self.outstanding().await?.limit,
            advice: self.has_restarted_ids().await?.then(super::renumber),
        })
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        let sql = include_str!("../sql/outbox/outstanding.sql");
        let rows = self.pool.query(OPERATION, sql, &[]).await?;
        let row = rows.first().ok_or_else(|| corrupt(OPERATION, "the outbox has no row"))?;
        let limit: Option<i64> = get(OPERATION, row, "most_outstanding")?;
        let messages = count(row, "messages")?;
        Ok(Outstanding { messages, limit: limit.map(i64::unsigned_abs) })
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        let params = [(&(MAX_LISTED as i64) as _, Type::INT8)];
        let sql = include_str!("../sql/outbox/dead_groups.sql");
        self.pool.query(OPERATION, sql, &params).await?.iter().map(group).collect()
    }

    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        let which = Columns::of(&query.which);
        let params = [
            (&query.state.map(StuckState::as_str) as _, Type::TEXT),
            (&which.ids as _, Type::INT8_ARRAY),
            (&which.topic as _, Type::TEXT),
            (&which.sink as _, Type::TEXT),
            (&which.reason as _, Type::TEXT),
            (&MessageId::number_before(query.after.as_ref()) as _, Type::INT8),
            (&(query.limit.min(MAX_LISTED) as i64) as _, Type::INT8),
        ];
        let sql = include_str!("../sql/outbox/stuck.sql");
        self.pool.query(OPERATION, sql, &params).await?.iter().map(stuck).collect()
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        let Some(id) = id.as_number() else { return Ok(None) };
        let name = self.outbox_name().await?;
        let sql = include_str!("../sql/outbox/message.sql");
        let rows = self.pool.query(OPERATION, sql, &[(&id, Type::INT8)]).await?;
        let stored = |row: &Row| {
            let message = message(name, row, Origin::Lane { due_in: None })?;
            Ok(Stored { message, sent: get(OPERATION, row, "sent")? })
        };
        rows.first().map(stored).transpose()
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        let (operation, sql) = match page.decision {
            Decision::Retry => {
                ("retry dead messages", include_str!("../sql/outbox/retry_dead.sql"))
            }
            Decision::Drop => ("drop dead messages", include_str!("../sql/outbox/drop_dead.sql")),
        };
        let which = Columns::of(&page.which);
        let params = [
            (&which.ids as _, Type::INT8_ARRAY),
            (&which.topic as _, Type::TEXT),
            (&which.sink as _, Type::TEXT),
            (&which.reason as _, Type::TEXT),
            (&MessageId::number_before(page.after.as_ref()) as _, Type::INT8),
            (&(page.most as i64) as _, Type::INT8),
            (&page.by.who as _, Type::TEXT),
            (&page.by.why as _, Type::TEXT),
            (&page.line as _, Type::INT8),
        ];
        steered(&self.pool.call(operation, sql, &params).await?)
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        let params = [(&(limit.min(MAX_LISTED) as i64) as _, Type::INT8)];
        let sql = include_str!("../sql/outbox/audit.sql");
        self.pool.query(OPERATION, sql, &params).await?.iter().map(audit_line).collect()
    }
}

/// A transaction that has been open for longer keeps messages back.
const LONG: Duration = Duration::from_secs(1);

impl Postgres {
    /// What keeps committed messages from being read. If it is hidden since when that is open, it is looked at twice.
    async fn holder(&self) -> Result<Option<Holder>, StoreError> {
        let sql = include_str!("../sql/outbox/holder.sql");
        let first = self.pool.query(OPERATION, sql, &[]).await?;
        let Some(row) = first.first() else { return Ok(None) };
        let holder = a_holder(row)?;
        if seconds(row, "seconds")?.is_some() {
            return Ok(Some(holder));
        }
        sleep(LONG).await;
        let again = self.pool.query(OPERATION, sql, &[]).await?;
        let transaction = |row| get::<&str>(OPERATION, row, "transaction");
        let is_same = again.first().map(transaction).transpose()? == Some(transaction(row)?);
        Ok(is_same.then_some(Holder { age: LONG, ..holder }))
    }

    async fn has_restarted_ids(&self) -> Result<bool, StoreError> {
        let sql = include_str!("../sql/outbox/restarted.sql");
        let rows = self.pool.query(OPERATION, sql, &[]).await?;
        rows.first().map_or(Ok(false), |row| get(OPERATION, row, "restarted"))
    }
}

/// What a page did.
pub(crate) fn steered(rows: &[Row]) -> Result<Steered, StoreError> {
    let row = rows.first().ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))?;
    let next: Option<i64> = get(OPERATION, row, "examined_to")?;
    Ok(Steered {
        messages: count(row, "messages")?,
        next: next.map(MessageId::number),
        line: get(OPERATION, row, "audit_line")?,
    })
}

/// A choice as parameters.
pub(crate) struct Columns<'a> {
    pub(crate) ids: Option<Vec<i64>>,
    pub(crate) topic: Option<&'a str>,
    pub(crate) sink: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
}

impl<'a> Columns<'a> {
    pub(crate) fn of(which: &'a Selection) -> Self {
        Self {
            ids: which.ids.as_ref().map(|ids| MessageId::numbers(ids)),
            topic: which.topic.as_deref(),
            sink: which.sink.as_deref(),
            reason: which.reason.as_deref(),
        }
    }
}

pub(crate) fn count(row: &Row, column: &str) -> Result<u64, StoreError> {
    get::<i64>(OPERATION, row, column).map(i64::unsigned_abs)
}

pub(crate) fn seconds(row: &Row, column: &str) -> Result<Option<Duration>, StoreError> {
    let seconds: Option<f64> = get(OPERATION, row, column)?;
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok()))
}

pub(crate) fn topic(row: &Row) -> Result<TopicStatus, StoreError> {
    Ok(TopicStatus {
        topic: get(OPERATION, row, "topic")?,
        outstanding: count(row, "outstanding")?,
        retrying: count(row, "retrying")?,
        waiting: count(row, "waiting")?,
        unrouted: count(row, "unrouted")?,
        dead: count(row, "dead")?,
        oldest: seconds(row, "oldest_seconds")?,
    })
}

pub(crate) fn relay(row: &Row) -> Result<RelayStatus, StoreError> {
    let relay = WorkerId(get(OPERATION, row, "relay")?);
    Ok(RelayStatus { relay, lanes: count(row, "lanes")? })
}

pub(crate) fn a_holder(row: &Row) -> Result<Holder, StoreError> {
    let age = seconds(row, "seconds")?.unwrap_or_default();
    Ok(Holder { name: get(OPERATION, row, "name")?, age })
}

pub(crate) fn group(row: &Row) -> Result<DeadGroup, StoreError> {
    Ok(DeadGroup {
        topic: get(OPERATION, row, "topic")?,
        sink: get(OPERATION, row, "sink")?,
        reason: get(OPERATION, row, "reason")?,
        messages: count(row, "messages")?,
        first: MessageId::number(get(OPERATION, row, "first")?),
        last: MessageId::number(get(OPERATION, row, "last")?),
    })
}

pub(crate) fn stuck(row: &Row) -> Result<Stuck, StoreError> {
    let on_dead: &str = get(OPERATION, row, "on_dead")?;
    Ok(Stuck {
        id: MessageId::number(get(OPERATION, row, "id")?),
        topic: get(OPERATION, row, "topic")?,
        key: get(OPERATION, row, "key")?,
        sink: get(OPERATION, row, "sink")?,
        state: stuck_state(OPERATION, row)?,
        attempts: get::<i32>(OPERATION, row, "attempts")?.unsigned_abs(),
        reason: get(OPERATION, row, "reason")?,
        then: OnDead::parse(on_dead).unwrap_or_default(),
        due_in: seconds(row, "due_seconds")?,
    })
}

pub(crate) fn audit_line(row: &Row) -> Result<AuditLine, StoreError> {
    Ok(AuditLine {
        at_ms: get(OPERATION, row, "at_ms")?,
        who: get(OPERATION, row, "who")?,
        what: get(OPERATION, row, "what")?,
        messages: count(row, "messages")?,
        why: get(OPERATION, row, "why")?,
    })
}
