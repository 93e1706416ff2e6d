//! Reading for people.

use super::{publish, row, steer, trouble};
use crate::{
    Sqlite,
    errors::Failure,
    row::parsed,
    sql::{Millis, Sql, array},
};
use async_trait::async_trait;
use rusqlite::{Row, params};
use tidegate_core::{
    InspectOutbox, MessageId, StoreError, WorkerId,
    limits::MAX_LISTED,
    outbox::{
        AuditLine, DeadGroup, Decision, OnDead, OutboxStatus, Outstanding, RelayStatus, SteerPage,
        Steered, Stored, Stuck, StuckQuery, StuckState, TopicStatus,
    },
};

const OPERATION: &str = "inspect outbox";

#[async_trait]
impl InspectOutbox for Sqlite {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        self.read(OPERATION, status).await
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        self.read(OPERATION, publish::outstanding).await
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        self.read(OPERATION, |sql| {
            Ok(sql.rows(include_str!("../sql/outbox/inspect_dead.sql"), [MAX_LISTED], group)?)
        })
        .await
    }

    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        self.read(OPERATION, move |sql| stuck(sql, &query)).await
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        let Some(id) = id.as_number() else { return Ok(None) };
        self.read(OPERATION, move |sql| {
            let name = row::outbox_name(sql)?;
            let read = |row: &Row<'_>| row::message(&name, row, Millis(i64::MAX));
            let text = include_str!("../sql/outbox/messages.sql");
            let message = sql.row(text, [array([id])], read)?;
            let text = include_str!("../sql/outbox/inspect_sent.sql");
            let sent = sql.row(text, [id], |row| row.get(0))?;
            Ok(message.map(|message| Stored { message, sent: sent.unwrap_or_default() }))
        })
        .await
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        let operation = match page.decision {
            Decision::Retry => "retry dead messages",
            Decision::Drop => "drop dead messages",
        };
        let steered = self.write(operation, move |sql| steer::steer(sql, &page)).await?;
        self.hint_messages();
        Ok(steered)
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        self.read(OPERATION, move |sql| {
            let text = include_str!("../sql/outbox/audit.sql");
            Ok(sql.rows(text, [limit.min(MAX_LISTED)], audit_line)?)
        })
        .await
    }
}

fn status(sql: &Sql) -> Result<OutboxStatus, Failure> {
    let _moment = sql.moment()?;
    let now = sql.now()?;
    let topic = |row: &Row<'_>| topic(row, now);
    Ok(OutboxStatus {
        topics: sql.rows(include_str!("../sql/outbox/inspect_status.sql"), [], topic)?,
        relays: sql.rows(include_str!("../sql/outbox/inspect_relays.sql"), [now.0], relay)?,
        sinks: trouble::read(sql, now)?,
        limit: publish::limit(sql)?,
        ..OutboxStatus::default()
    })
}

fn topic(row: &Row<'_>, now: Millis) -> rusqlite::Result<TopicStatus> {
    let oldest: Option<i64> = row.get("oldest_ms")?;
    Ok(TopicStatus {
        topic: row::topic(row)?,
        outstanding: row.get("outstanding")?,
        retrying: row.get("retrying")?,
        waiting: row.get("waiting")?,
        unrouted: row.get("unrouted")?,
        dead: row.get("dead")?,
        oldest: oldest.map(|oldest| now.since(Millis(oldest))),
    })
}

fn relay(row: &Row<'_>) -> rusqlite::Result<RelayStatus> {
    Ok(RelayStatus { relay: WorkerId(row.get("relay")?), lanes: row.get("lanes")? })
}

fn group(row: &Row<'_>) -> rusqlite::Result<DeadGroup> {
    Ok(DeadGroup {
        topic: row::topic(row)?,
        sink: row.get("sink")?,
        reason: row.get("reason")?,
        messages: row.get("messages")?,
        first: MessageId::number(row.get("first")?),
        last: MessageId::number(row.get("last")?),
    })
}

fn stuck(sql: &Sql, query: &StuckQuery) -> Result<Vec<Stuck>, Failure> {
    let now = sql.now()?;
    let which = &query.which;
    let params = params![
        query.state.map(StuckState::as_str),
        which.ids.as_ref().map(|ids| array(MessageId::numbers(ids))),
        which.topic,
        which.sink,
        which.reason,
        MessageId::number_before(query.after.as_ref()),
        query.limit.min(MAX_LISTED),
    ];
    let read = |row: &Row<'_>| stuck_row(row, now);
    Ok(sql.rows(include_str!("../sql/outbox/inspect_stuck.sql"), params, read)?)
}

fn stuck_row(row: &Row<'_>, now: Millis) -> rusqlite::Result<Stuck> {
    let state = parsed(row, "state", |word: String| StuckState::parse(&word))?;
    let due = Millis(row.get("due_ms")?);
    let timed = matches!(state, StuckState::Retry | StuckState::Later);
    Ok(Stuck {
        id: MessageId::number(row.get("id")?),
        topic: row::topic(row)?,
        key: row::text(row, "key")?,
        sink: row.get("sink")?,
        state,
        attempts: row.get("attempts")?,
        reason: row.get("reason")?,
        then: parsed(row, "on_dead", |word: String| OnDead::parse(&word))?,
        due_in: timed.then(|| due.since(now)),
    })
}

fn audit_line(row: &Row<'_>) -> rusqlite::Result<AuditLine> {
    Ok(AuditLine {
        at_ms: row.get("at_ms")?,
        who: row.get("who")?,
        what: row.get("what")?,
        messages: row.get("messages")?,
        why: row.get("why")?,
    })
}
