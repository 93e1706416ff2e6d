//! Messages come in: in a transaction of their own, or in the caller's.

use crate::{
    Sqlite,
    errors::Failure,
    sql::{Counters, Millis, Sql},
};
use async_trait::async_trait;
use rusqlite::{Transaction, params};
use tidegate_core::{
    Headers, MessageId, NewMessage, Publish, StoreError, limits::MAX_PUBLISHED, outbox::Outstanding,
};

const OPERATION: &str = "publish";

/// Payloads go into a statement as one value, which is copied: not too long.
const MOST_BYTES: usize = 16 << 20;

/// Publishes messages in the caller's own transaction, on a connection of its own to the store's file:
/// they are there if and when it commits. Relays find them when they look next.
pub fn publish(
    transaction: &Transaction<'_>,
    messages: &[NewMessage],
) -> Result<Vec<MessageId>, StoreError> {
    messages.iter().try_for_each(NewMessage::check)?;
    let counters = Counters::default();
    add(&Sql::new(transaction, &counters), messages).map_err(|failure| failure.during(OPERATION))
}

#[async_trait]
impl Publish for Sqlite {
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        messages.iter().try_for_each(NewMessage::check)?;
        let ids = self.write(OPERATION, move |sql| add(sql, &messages)).await?;
        self.hint_messages();
        Ok(ids)
    }

    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError> {
        let most = most.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
        self.write("limit outstanding", move |sql| {
            sql.execute(include_str!("../sql/outbox/limit.sql"), [most])?;
            Ok(())
        })
        .await
    }
}

fn add(sql: &Sql, messages: &[NewMessage]) -> Result<Vec<MessageId>, Failure> {
    if limit(sql)?.is_some() {
        outstanding(sql)?.admit()?;
    }
    let now = sql.now()?;
    let mut ids = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while !rest.is_empty() {
        let (some, others) = rest.split_at(fitting(rest));
        ids.extend(insert(sql, some, now)?);
        rest = others;
    }
    Ok(ids)
}

/// How many messages one statement takes.
fn fitting(messages: &[NewMessage]) -> usize {
    let mut bytes = 0;
    let fits = |message: &&NewMessage| {
        bytes += message.payload.len();
        bytes <= MOST_BYTES
    };
    messages.iter().take(MAX_PUBLISHED).take_while(fits).count().max(1)
}

fn insert(sql: &Sql, messages: &[NewMessage], now: Millis) -> Result<Vec<MessageId>, Failure> {
    let mut payloads = Vec::new();
    let row = |message: &NewMessage| {
        let from = payloads.len() + 1; // SQL counts from one
        payloads.extend_from_slice(&message.payload);
        let due = message.delay.map(|delay| now.plus(delay).0);
        let headers = headers(&message.headers);
        serde_json::json!([message.topic, message.key, headers, due, from, message.payload.len()])
    };
    let rows = super::rows(messages.iter().map(row));
    let params = params![rows, payloads, now.0];
    let mut ids: Vec<i64> =
        sql.rows(include_str!("../sql/outbox/publish.sql"), params, |row| row.get(0))?;
    // Drawn in the order of the messages; returned in any.
    ids.sort_unstable();
    Ok(ids.into_iter().map(MessageId::number).collect())
}

/// As they are stored: JSON text, or nothing.
fn headers(headers: &Headers) -> Option<String> {
    let text = |headers| serde_json::to_string(headers).expect("text keys and values are JSON");
    (!headers.is_empty()).then(|| text(headers))
}

pub(super) fn limit(sql: &Sql) -> Result<Option<u64>, Failure> {
    let limit = sql.row(include_str!("../sql/outbox/limit_read.sql"), [], |row| row.get(0))?;
    Ok(limit.flatten())
}

/// Never too low.
pub(super) fn outstanding(sql: &Sql) -> Result<Outstanding, Failure> {
    let messages = sql.row(include_str!("../sql/outbox/outstanding.sql"), [], |row| row.get(0))?;
    Ok(Outstanding { messages: messages.unwrap_or(0), limit: limit(sql)? })
}
