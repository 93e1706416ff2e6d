//! Removing what was sent, some at a time: one transaction holds up all writers.

use super::row;
use crate::{
    Sqlite,
    errors::Failure,
    sql::{Millis, Sql, millis},
};
use async_trait::async_trait;
use rusqlite::{Row, params};
use std::{ops::ControlFlow, time::Duration};
use tidegate_core::{Message, MessageId, Retain, StoreError, limits::MAX_LISTED, outbox::Sealed};

/// Messages that are removed in one transaction.
const CHUNK: usize = 10_000;

#[async_trait]
impl Retain for Sqlite {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        self.read("seal messages", move |sql| seal(sql, age)).await
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let after = MessageId::number_before(after.as_ref());
        self.read("read sealed messages", move |sql| {
            let name = row::outbox_name(sql)?;
            let params = params![after, sealed.place, limit.min(MAX_LISTED)];
            let read = |row: &Row<'_>| row::message(&name, row, Millis(i64::MAX));
            Ok(sql.rows(include_str!("../sql/outbox/retain_sealed.sql"), params, read)?)
        })
        .await
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        let same = move |removed: &u64| *removed == sealed.messages;
        let removed = self
            .write_if("discard messages", same, move |sql| {
                let text = include_str!("../sql/outbox/retain_discard.sql");
                Ok(sql.execute(text, [sealed.place])? as u64)
            })
            .await?;
        // With something new among them nothing was removed.
        Ok(if same(&removed) { removed } else { 0 })
    }
}

/// The first messages that are all old enough, up to the first that is to be read.
fn seal(sql: &Sql, age: Duration) -> Result<Option<Sealed>, Failure> {
    let _moment = sql.moment()?;
    let published_before = sql.now()?.0.saturating_sub(millis(age));
    let unread = sql.row(include_str!("../sql/outbox/retain_unread.sql"), [], |row| row.get(0))?;
    let unread: i64 = unread.flatten().unwrap_or(i64::MAX);
    let mut sealed = None;
    let mut messages = 0;
    let old = include_str!("../sql/outbox/retain_old.sql");
    sql.each(old, params![unread, CHUNK], |row| {
        if row.get::<_, i64>("published_ms")? > published_before {
            return Ok(ControlFlow::Break(()));
        }
        messages += 1;
        sealed = Some(Sealed { place: row.get("id")?, messages });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(sealed)
}
